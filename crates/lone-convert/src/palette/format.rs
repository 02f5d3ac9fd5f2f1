//! How weights are stored: as they are, or as indices of some width into tables for some rows.

use std::fmt;

use lone_mil::DType;

/// What the matrices of linear layers are stored as. Everything else is fp16 always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WeightPrecision {
    /// The nearest fp16.
    #[default]
    Fp16,
    /// 4-bit indices into tables of 16 entries.
    Lut4,
    /// 6-bit indices into tables of 64 entries.
    Lut6,
    /// 8-bit indices into tables of 256 entries.
    Lut8,
}

impl WeightPrecision {
    /// All of them, the widest first.
    pub const ALL: [WeightPrecision; 4] =
        [WeightPrecision::Fp16, WeightPrecision::Lut8, WeightPrecision::Lut6, WeightPrecision::Lut4];

    /// As it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            WeightPrecision::Fp16 => "fp16",
            WeightPrecision::Lut4 => "lut4",
            WeightPrecision::Lut6 => "lut6",
            WeightPrecision::Lut8 => "lut8",
        }
    }

    /// Rows a table, where nothing is asked for; 0 for all rows.
    pub(crate) fn usual_group(self) -> usize {
        match self {
            WeightPrecision::Lut4 | WeightPrecision::Lut6 => 16,
            WeightPrecision::Fp16 | WeightPrecision::Lut8 => 0,
        }
    }

    /// Of the indices; `None` where there are none.
    pub(crate) fn index_dtype(self) -> Option<DType> {
        match self {
            WeightPrecision::Fp16 => None,
            WeightPrecision::Lut4 => Some(DType::U4),
            WeightPrecision::Lut6 => Some(DType::U6),
            WeightPrecision::Lut8 => Some(DType::U8),
        }
    }
}

impl fmt::Display for WeightPrecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The palettes of one matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PaletteFormat {
    /// Of an index: 4, 6 or 8 bits.
    pub(crate) indices: DType,
    /// Rows that share a table; divides the rows of the matrix.
    pub(crate) group_rows: usize,
}

impl PaletteFormat {
    /// For a matrix of `rows` rows: the most rows a table that divide them and are no more than `group`, or all for
    /// 0. `None` where weights are fp16.
    pub(crate) fn new(precision: WeightPrecision, group: usize, rows: usize) -> Option<Self> {
        let indices = precision.index_dtype()?;
        let most = if group == 0 { rows } else { group.min(rows) };
        let group_rows = (1..=most).rev().find(|&count| rows.is_multiple_of(count))?;
        Some(PaletteFormat { indices, group_rows })
    }

    /// Entries of a table.
    pub(crate) fn entries(self) -> usize {
        1 << self.indices.bits()
    }

    /// Tables of a matrix of `rows` rows.
    pub(crate) fn tables(self, rows: usize) -> usize {
        rows / self.group_rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_serves_as_many_rows_as_divide_the_matrix() {
        let rows = |group, rows| PaletteFormat::new(WeightPrecision::Lut4, group, rows).unwrap().group_rows;
        assert_eq!((rows(16, 1536), rows(16, 308), rows(16, 307), rows(16, 4)), (16, 14, 1, 4));
        assert_eq!((rows(0, 307), rows(512, 307)), (307, 307));
    }

    #[test]
    fn a_table_has_an_entry_for_every_index() {
        let entries = |precision| {
            PaletteFormat::new(precision, 0, 8).map(|format| (format.entries(), format.tables(8)))
        };
        assert_eq!(entries(WeightPrecision::Lut6), Some((64, 1)));
        assert_eq!(entries(WeightPrecision::Fp16), None);
    }
}
