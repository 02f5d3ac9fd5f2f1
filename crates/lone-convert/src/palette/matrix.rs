//! A matrix palettized: its groups spread over threads, their results brought back into order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};

use half::f16;
use lone_lfm::Tensor;

use super::PaletteFormat;
use super::group::{Group, GroupMaker};
use super::pack::BitStream;

/// Results that may wait for an earlier one, for each thread.
const WAITING: usize = 4;

/// Rows of a tensor, times a power of two, and how they are palettized.
#[derive(Debug, Clone)]
pub(crate) struct Matrix<'c> {
    pub(crate) tensor: Tensor<'c>,
    pub(crate) rows: Range<usize>,
    /// Columns; each part has indices and tables of its own.
    pub(crate) parts: Vec<Range<usize>>,
    pub(crate) scale: f32,
    pub(crate) format: PaletteFormat,
}

/// A part of a matrix as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Palettized {
    /// (rows, columns) indices, packed.
    pub(crate) indices: Vec<u8>,
    /// (tables, entries).
    pub(crate) tables: Vec<f16>,
}

/// Palettizes each part of the matrix; gives up when `abandoned` turns true.
pub(crate) fn palettize(matrix: &Matrix<'_>, abandoned: &AtomicBool) -> Option<Vec<Palettized>> {
    let groups = matrix.format.tables(matrix.rows.len());
    let mut parts: Vec<Part> = matrix.parts.iter().map(|columns| Part::new(matrix, columns.len())).collect();
    let work = Work { matrix, groups, next: AtomicUsize::new(0), abandoned };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(groups);
    std::thread::scope(|scope| {
        let (sender, results) = sync_channel(WAITING * threads);
        for _ in 0..threads {
            let (work, sender) = (&work, sender.clone());
            scope.spawn(move || work.run(&sender));
        }
        drop(sender);
        let mut early = BTreeMap::new();
        for expected in 0..groups {
            let group = loop {
                if let Some(group) = early.remove(&expected) {
                    break group;
                }
                // Workers leave without a result only when the work is abandoned.
                let (number, group): (usize, Vec<Group>) = results.recv().ok()?;
                early.insert(number, group);
            };
            parts.iter_mut().zip(&group).for_each(|(part, group)| part.add(group));
        }
        Some(parts.into_iter().map(Part::finish).collect())
    })
}

/// What the threads share.
struct Work<'a, 'c> {
    matrix: &'a Matrix<'c>,
    groups: usize,
    next: AtomicUsize,
    abandoned: &'a AtomicBool,
}

impl Work<'_, '_> {
    /// Makes groups until none is left, or nobody wants them any more.
    fn run(&self, results: &SyncSender<(usize, Vec<Group>)>) {
        let mut maker = GroupMaker::new();
        let mut values = Vec::new();
        while !self.abandoned.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.groups {
                return;
            }
            let group = self.matrix.parts.iter().map(|columns| {
                self.matrix.read(number, columns.clone(), &mut values);
                maker.plain(&values, self.matrix.format.entries())
            });
            if results.send((number, group.collect())).is_err() {
                return;
            }
        }
    }
}

impl Matrix<'_> {
    /// The values of a group in fp16, (rows, columns).
    fn read(&self, group: usize, columns: Range<usize>, values: &mut Vec<f16>) {
        let start = self.rows.start + group * self.format.group_rows;
        let rows = start..start + self.format.group_rows;
        values.resize(rows.len() * columns.len(), f16::ZERO);
        self.tensor.read_columns_f16(rows, columns, self.scale, values);
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
