//! A table, for a terminal and for Markdown.

use std::fmt::Write;

/// Cells by row; every row has as many as there are headings.
#[derive(Debug)]
pub(super) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(headings: &[&'static str]) -> Self {
        Table { headings: headings.to_vec(), rows: Vec::new() }
    }

    pub(super) fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.headings.len(), "a cell for each heading");
        self.rows.push(row);
    }

    /// Columns as wide as their widest cell, indented.
    pub(super) fn text(&self) -> String {
        let mut widths: Vec<usize> = self.headings.iter().map(|heading| heading.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let headings = self.headings.iter().map(|&heading| heading.to_owned()).collect();
        let mut text = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            for (width, cell) in widths.iter().zip(row) {
                write!(line, "  {cell:<width$}").expect("writing to a string does not fail");
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }

    pub(super) fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let mut text = line(&mut self.headings.iter().map(|&heading| heading.to_owned()));
        text += &line(&mut self.headings.iter().map(|_| "---".to_owned()));
        for row in &self.rows {
            text += &line(&mut row.iter().cloned());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_bars_do_not_end_them() {
        let mut table = Table::new(&["a", "long heading"]);
        table.push(vec!["wide cell".into(), "x|y".into()]);
        table.push(vec!["b".into(), "z".into()]);
        assert_eq!(table.text(), "  a          long heading\n  wide cell  x|y\n  b          z\n");
        assert_eq!(
            table.markdown(),
            "| a | long heading |\n| --- | --- |\n| wide cell | x\\|y |\n| b | z |\n"
        );
    }
}
