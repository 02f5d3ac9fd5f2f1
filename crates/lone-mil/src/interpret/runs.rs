//! Rows computed on all processors, where there is enough to compute.

use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::thread;

/// Multiplications that are worth a thread.
const WORTH_A_THREAD: usize = 1 << 19;

/// Calls `f` with the number of a row of `out` and the run of whole rows that begins there, until all have been filled.
/// An element takes `multiplications`.
pub(crate) fn each_run<T: Send>(
    out: &mut [T],
    row_len: usize,
    multiplications: usize,
    f: impl Fn(usize, &mut [T]) + Sync,
) {
    let rows = out.len() / row_len;
    let threads = processors().min(out.len().saturating_mul(multiplications) / WORTH_A_THREAD).clamp(1, rows);
    let rows_each = rows.div_ceil(threads);
    let mut runs = out.chunks_mut(rows_each * row_len).enumerate();
    let Some((_, own)) = runs.next() else { return };
    thread::scope(|scope| {
        for (i, run) in runs {
            let f = &f;
            scope.spawn(move || f(i * rows_each, run));
        }
        f(0, own);
    });
}

/// How many there are for this process, asked once: the answer takes reading files.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, NonZeroUsize::get))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_filled_once_by_its_number_however_many_threads_there_are() {
        for (rows, multiplications) in
            [(1, 1), (1, WORTH_A_THREAD), (7, 1), (7, WORTH_A_THREAD), (1000, 4096)]
        {
            let mut out = vec![0; rows * 3];
            each_run(&mut out, 3, multiplications, |first, run| {
                for (row, out) in (first..).zip(run.chunks_exact_mut(3)) {
                    out.iter_mut().for_each(|out| *out += row + 1);
                }
            });
            let expected: Vec<usize> = (0..rows).flat_map(|row| [row + 1; 3]).collect();
            assert_eq!(out, expected);
        }
    }
}
