//! A matrix palettized: its groups spread over threads, their results brought back into order.

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use half::f16;
use lone_lfm::Tensor;
use ndarray::Array2;

use super::PaletteFormat;
use super::batch::{Batch, Setting, TableMaker};
use super::calibrated::calibrated;
use super::group::{Group, GroupMaker};
use super::pack::{BitStream, unpack};
use super::parallel::processors;
use super::sensitivity::Sensitivity;

/// Results that may wait for an earlier one, for each thread.
const WAITING: usize = 4;

/// Rows of a batch: enough for matrix products to be worth their while, and as many as spread over the processors.
const BATCH_ROWS: RangeInclusive<usize> = 128..=512;

/// Rows of a tensor, times a power of two, and how they are palettized.
#[derive(Debug, Clone)]
pub(crate) struct Matrix<'c> {
    pub(crate) tensor: Tensor<'c>,
    pub(crate) rows: Range<usize>,
    /// Consecutive columns; each part has indices and tables of its own.
    pub(crate) parts: Vec<Range<usize>>,
    pub(crate) scale: f32,
    pub(crate) format: PaletteFormat,
}

impl Matrix<'_> {
    /// What `parts` have for a row of the tensor, which is one of the matrix, to `out` (C).
    pub(crate) fn read_row(&self, parts: &[Palettized], row: usize, out: &mut [f32]) {
        let row = row - self.rows.start;
        for (columns, part) in self.parts.iter().zip(parts) {
            let start = row * columns.len();
            for (at, out) in (start..).zip(&mut out[columns.clone()]) {
                *out = part.value(self.format, row / self.format.group_rows, at).to_f32() / self.scale;
            }
        }
    }
}

/// A part of a matrix as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Palettized {
    /// (rows, columns) indices, packed.
    pub(crate) indices: Vec<u8>,
    /// (tables, entries).
    pub(crate) tables: Vec<f16>,
}

impl Palettized {
    /// Of indices and tables.
    pub(crate) fn bytes(&self) -> u64 {
        (self.indices.len() + size_of_val(self.tables.as_slice())) as u64
    }

    /// The entry that index number `at` names in that table.
    fn value(&self, format: PaletteFormat, table: usize, at: usize) -> f16 {
        let index = unpack(&self.indices, format.indices.bits(), at);
        self.tables[table * format.entries() + usize::from(index)]
    }
}

/// Palettizes each part of the matrix, for inputs of that sensitivity or for its own sake; gives up when `abandoned`
/// turns true.
pub(crate) fn palettize(
    matrix: &Matrix<'_>,
    sensitivity: Option<&Sensitivity>,
    abandoned: &AtomicBool,
) -> Option<Vec<Palettized>> {
    let work = Work::new(matrix, sensitivity, abandoned);
    let units = work.units();
    let mut parts: Vec<Part> = matrix.parts.iter().map(|columns| Part::new(matrix, columns.len())).collect();
    let threads = processors().min(units);
    std::thread::scope(|scope| {
        let (sender, results) = sync_channel(WAITING * threads);
        for _ in 0..threads {
            let (work, sender) = (&work, sender.clone());
            scope.spawn(move || work.run(&sender));
        }
        drop(sender);
        let mut early = BTreeMap::new();
        for expected in 0..units {
            let unit = loop {
                if let Some(unit) = early.remove(&expected) {
                    break unit;
                }
                // Workers leave without a result only when the work is abandoned.
                let (number, unit): (usize, Vec<Group>) = results.recv().ok()?;
                early.insert(number, unit);
            };
            unit.iter().zip((0..parts.len()).cycle()).for_each(|(group, part)| parts[part].add(group));
        }
        Some(parts.into_iter().map(Part::finish).collect())
    })
}

/// What the threads share.
struct Work<'a, 'c> {
    matrix: &'a Matrix<'c>,
    sensitivity: Option<&'a Sensitivity>,
    /// For each place in the order of the sensitivity, the part its column belongs to.
    part: Vec<usize>,
    /// Groups that are made at once.
    unit_groups: usize,
    next: AtomicUsize,
    abandoned: &'a AtomicBool,
}

impl<'a, 'c> Work<'a, 'c> {
    fn new(matrix: &'a Matrix<'c>, sensitivity: Option<&'a Sensitivity>, abandoned: &'a AtomicBool) -> Self {
        let part_of = |column: &usize| {
            matrix.parts.iter().position(|part| part.contains(column)).expect("parts cover all")
        };
        let even = matrix.rows.len() / processors();
        let batch_rows = even.clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end());
        Work {
            matrix,
            sensitivity,
            part: sensitivity.map_or_else(Vec::new, |s| s.order.iter().map(part_of).collect()),
            unit_groups: sensitivity.map_or(1, |_| (batch_rows / matrix.format.group_rows).max(1)),
            next: AtomicUsize::new(0),
            abandoned,
        }
    }

    fn units(&self) -> usize {
        self.matrix.format.tables(self.matrix.rows.len()).div_ceil(self.unit_groups)
    }

    /// Makes units until none is left, or nobody takes them any more.
    fn run(&self, results: &SyncSender<(usize, Vec<Group>)>) {
        let mut plain = GroupMaker::new();
        let mut maker = TableMaker::new();
        while !self.abandoned.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.units() {
                return;
            }
            let groups = match self.sensitivity {
                None => self.plain(number, &mut plain),
                Some(sensitivity) => self.calibrated(number, sensitivity, &mut maker),
            };
            if results.send((number, groups)).is_err() {
                return;
            }
        }
    }

    /// Rows of the tensor that a unit is.
    fn rows(&self, unit: usize) -> Range<usize> {
        let unit_rows = self.unit_groups * self.matrix.format.group_rows;
        let start = self.matrix.rows.start + unit * unit_rows;
        start..self.matrix.rows.end.min(start + unit_rows)
    }

    /// One group, part by part.
    fn plain(&self, unit: usize, maker: &mut GroupMaker) -> Vec<Group> {
        let rows = self.rows(unit);
        let parts = self.matrix.parts.iter().map(|columns| {
            let mut values = vec![f16::ZERO; rows.len() * columns.len()];
            let (columns, scale) = (columns.clone(), self.matrix.scale);
            self.matrix.tensor.read_columns_f16(rows.clone(), columns, scale, &mut values);
            maker.plain(&values, self.matrix.format.entries())
        });
        parts.collect()
    }

    /// Group by group, part by part.
    fn calibrated(&self, unit: usize, sensitivity: &Sensitivity, maker: &mut TableMaker) -> Vec<Group> {
        let rows = self.rows(unit);
        let mut values = Array2::zeros((rows.len(), self.matrix.tensor.row_len()));
        let slice = values.as_slice_mut().expect("a new array lies in one piece");
        self.matrix.tensor.read_rows_f32(rows.clone(), slice);
        let weights = Array2::from_shape_fn(values.raw_dim(), |(row, place)| {
            values[[row, sensitivity.order[place]]] * self.matrix.scale
        });
        let PaletteFormat { group_rows, .. } = self.matrix.format;
        let setting = Setting {
            sensitivity,
            part: &self.part,
            parts: self.matrix.parts.len(),
            group_rows,
            entries: self.matrix.format.entries(),
        };
        self.groups(&calibrated(setting, sensitivity.aims(weights), maker))
    }

    /// A batch as groups, columns back in the order of the matrix.
    fn groups(&self, batch: &Batch<'_>) -> Vec<Group> {
        let Setting { sensitivity, parts, group_rows, .. } = batch.setting;
        let mut place = vec![0; sensitivity.order.len()];
        sensitivity.order.iter().enumerate().for_each(|(at, &column)| place[column] = at);
        let groups = batch.tables.rows().into_iter().enumerate().map(|(number, table)| {
            let rows = number / parts * group_rows..(number / parts + 1) * group_rows;
            let places = &place[self.matrix.parts[number % parts].clone()];
            let indices = rows.flat_map(|row| places.iter().map(move |&place| batch.indices[[row, place]]));
            let entries = table.iter().map(|&entry| f16::from_f32(entry));
            Group { entries: entries.collect(), indices: indices.collect() }
        });
        groups.collect()
    }
}

/// A part in the making.
struct Part {
    indices: BitStream,
    tables: Vec<f16>,
}

impl Part {
    fn new(matrix: &Matrix<'_>, columns: usize) -> Self {
        let tables = matrix.format.tables(matrix.rows.len()) * matrix.format.entries();
        Part {
            indices: BitStream::new(matrix.format.indices.bits(), matrix.rows.len() * columns),
            tables: Vec::with_capacity(tables),
        }
    }

    fn add(&mut self, group: &Group) {
        self.indices.extend(group.indices.iter().copied());
        self.tables.extend(&group.entries);
    }

    fn finish(self) -> Palettized {
        Palettized { indices: self.indices.finish(), tables: self.tables }
    }
}
