//! The best palette there is: 1-D k-means, solved exactly.
//!
//! Weights are fp16, so a tensor is a histogram of at most 65 536 values. In one dimension the clusters of an
//! optimal k-means are runs of the sorted values, and the best split of the first `j` values into `m` runs is
//! `best[m][j] = min over i of best[m-1][i] + cost(i, j)`. The cost satisfies the quadrangle inequality, so the
//! best `i` never moves left as `j` or `m` grows, and divide and conquer finds a row in O(n log n). No random
//! starts, no iterations: the same histogram always gives the same palette.

use half::{bf16, f16};

use super::histogram::Histogram;

/// The part of the least cost that rounding entries to eight significant bits may add: little beside the factor of four
/// that one bit less an index would be. Entries whose two upper bytes are the whole of an f32 are looked up sooner.
const SHORT_COST: f64 = 0.25;

/// Finds palettes, one after the other, in the same memory.
#[derive(Debug, Default)]
pub(crate) struct Solver {
    sums: Sums,
    /// `best[m-1][j]` and `best[m][j]`.
    previous: Vec<f64>,
    best: Vec<f64>,
    /// For each run but the first, n + 1 starts: where it begins if it ends at `j`.
    starts: Vec<u32>,
}

/// The entries of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Palette {
    /// Cluster means, ascending: as many as were asked for, or as there are values. Rounded to fp16, or, if
    /// [`SHORT_COST`] allows it, to those of fp16 that are bf16 numbers too, of which some may be one.
    pub(crate) entries: Vec<f16>,
    /// Weighted sum of squared errors with the unrounded means.
    pub(crate) cost: f64,
}

impl Solver {
    /// The optimal palette of at most `size` entries.
    ///
    /// # Panics
    /// If `size` is 0 or the histogram is empty.
    pub(crate) fn palette(&mut self, histogram: &Histogram, size: usize) -> Palette {
        assert!(size > 0 && !histogram.values.is_empty(), "a palette needs entries and values");
        self.sums.take(histogram);
        let runs = self.optimal_runs(size.min(histogram.values.len()));
        let cost = runs.windows(2).map(|run| self.sums.cost(run[0], run[1])).sum();
        let short = self.short_entries(&runs, SHORT_COST * cost);
        let means = runs.windows(2).map(|run| f16::from_f64(self.sums.mean(run[0], run[1])));
        Palette { entries: short.unwrap_or_else(|| means.collect()), cost }
    }

    /// The means of the runs as numbers that are both fp16 and bf16, if that costs no more than `most`.
    fn short_entries(&self, runs: &[usize], most: f64) -> Option<Vec<f16>> {
        let mut cost = 0.0;
        let entries = runs.windows(2).map(|run| {
            let (mean, weight) = (self.sums.mean(run[0], run[1]), self.sums.weight(run[0], run[1]));
            let entry = f16::from_f32(bf16::from_f64(mean).to_f32());
            cost += weight * (entry.to_f64() - mean).powi(2);
            entry
        });
        let mut entries: Vec<f16> = entries.collect();
        // Of means that have become the same one is enough.
        entries.dedup();
        (cost <= most).then_some(entries)
    }

    /// Boundaries of the optimal `size` runs: `size + 1` ascending indices from 0 to n.
    fn optimal_runs(&mut self, size: usize) -> Vec<usize> {
        let n = self.sums.len();
        self.previous.clear();
        self.previous.extend((0..=n).map(|j| if j == 0 { 0.0 } else { self.sums.cost(0, j) }));
        self.starts.clear();
        self.starts.resize(size * (n + 1), 0);
        for run in 1..size {
            self.best.clear();
            self.best.resize(n + 1, f64::INFINITY);
            let (known, start) = self.starts.split_at_mut(run * (n + 1));
            let mut row = Row {
                sums: &self.sums,
                previous: &self.previous,
                least: &known[(run - 1) * (n + 1)..],
                best: &mut self.best,
                start: &mut start[..n + 1],
            };
            // Run number `run` ends at j and starts at i >= run: each earlier run holds a value at least. Of the
            // last run only the end at n is wanted.
            let first_end = if run + 1 == size { n } else { run + 1 };
            row.solve(first_end, n, run, n - 1);
            std::mem::swap(&mut self.previous, &mut self.best);
        }
        let mut boundaries = vec![n];
        let mut end = n;
        for start in self.starts.chunks_exact(n + 1).rev() {
            end = start[end] as usize;
            boundaries.push(end);
        }
        boundaries.reverse();
        boundaries
    }
}

/// Prefix sums of weight, weight * value and weight * value².
#[derive(Debug, Default)]
struct Sums {
    rows: Vec<[f64; 3]>,
}

impl Sums {
    fn take(&mut self, histogram: &Histogram) {
        let mut row = [0.0; 3];
        self.rows.clear();
        self.rows.push(row);
        for (&value, &weight) in histogram.values.iter().zip(&histogram.weights) {
            let value = f64::from(value);
            row = [row[0] + weight, row[1] + weight * value, row[2] + weight * value * value];
            self.rows.push(row);
        }
    }

    fn len(&self) -> usize {
        self.rows.len() - 1
    }

    /// Weighted squared error of the values `i..j` around their mean.
    fn cost(&self, i: usize, j: usize) -> f64 {
        let (a, b) = (self.rows[i], self.rows[j]);
        let (weight, first, second) = (b[0] - a[0], b[1] - a[1], b[2] - a[2]);
        (second - first * first / weight).max(0.0)
    }

    fn mean(&self, i: usize, j: usize) -> f64 {
        let (a, b) = (self.rows[i], self.rows[j]);
        (b[1] - a[1]) / (b[0] - a[0])
    }

    fn weight(&self, i: usize, j: usize) -> f64 {
        self.rows[j][0] - self.rows[i][0]
    }
}

/// One row of the dynamic program.
struct Row<'a> {
    sums: &'a Sums,
    previous: &'a [f64],
    /// Starts of the run before, which ends at j: this one starts no further left.
    least: &'a [u32],
    best: &'a mut [f64],
    start: &'a mut [u32],
}

impl Row<'_> {
    /// Fills `j` in `low..=high`, knowing that the best start lies in `from..=to`.
    fn solve(&mut self, low: usize, high: usize, from: usize, to: usize) {
        if low > high {
            return;
        }
        let j = low + (high - low) / 2;
        // Rounded sums may disagree about equals, so the bounds are kept from crossing.
        let last = to.min(j - 1);
        let first = from.max(self.least[j] as usize).min(last);
        let (mut best, mut at) = (f64::INFINITY, first);
        for i in first..=last {
            let cost = self.previous[i] + self.sums.cost(i, j);
            if cost < best {
                (best, at) = (cost, i);
            }
        }
        self.best[j] = best;
        self.start[j] = at as u32;
        self.solve(low, j - 1, from, at);
        self.solve(j + 1, high, at, to);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn optimal_palette(histogram: &Histogram, size: usize) -> Palette {
        Solver::default().palette(histogram, size)
    }

    /// Tries every way to cut the sorted values into `size` runs.
    fn brute_force(sums: &Sums, from: usize, size: usize) -> f64 {
        let n = sums.len();
        if size == 1 {
            return sums.cost(from, n);
        }
        (from + 1..=n - (size - 1))
            .map(|cut| sums.cost(from, cut) + brute_force(sums, cut, size - 1))
            .fold(f64::INFINITY, f64::min)
    }

    fn evenly(values: usize, from: f32, to: f32) -> Histogram {
        Histogram::of((0..values).map(|i| (from + (to - from) * i as f32 / values as f32, 1.0)))
    }

    #[test]
    fn entries_have_eight_significant_bits() {
        let is_short = |entry: &f16| bf16::from_f32(entry.to_f32()).to_f32() == entry.to_f32();
        for size in [16, 64] {
            assert!(optimal_palette(&evenly(2000, -1.0, 1.0), size).entries.iter().all(is_short));
        }
    }

    #[test]
    fn entries_stay_as_they_are_where_eight_bits_are_too_few() {
        let histogram = evenly(500, 1.0, 1.5);
        let entries = optimal_palette(&histogram, 256).entries;
        assert!(entries.is_sorted_by(|a, b| a < b), "none has become another");
        assert!(optimal_palette(&evenly(100, 65000.0, 65500.0), 32).entries.iter().all(|e| e.is_finite()));
    }

    #[test]
    fn as_many_entries_as_values_lose_nothing() {
        let palette = optimal_palette(&Histogram::of([(1.0, 1.0), (-2.0, 3.0), (0.5, 1.0)]), 16);
        assert_eq!(palette.entries, [-2.0, 0.5, 1.0].map(f16::from_f32));
        assert_eq!(palette.cost, 0.0);
    }

    #[test]
    fn a_heavy_value_pulls_its_entry() {
        let palette = optimal_palette(&Histogram::of([(0.0, 1.0), (1.0, 3.0), (100.0, 1.0)]), 2);
        assert_eq!(palette.entries, [0.75, 100.0].map(f16::from_f32));
    }

    /// Where Lloyd's iterations end that start from entries at equal shares of the values.
    fn lloyd(histogram: &Histogram, size: usize) -> f64 {
        let (values, weights) = (&histogram.values, &histogram.weights);
        let mut entries: Vec<f64> =
            (0..size).map(|i| f64::from(values[(2 * i + 1) * values.len() / (2 * size)])).collect();
        let mut cost = f64::INFINITY;
        loop {
            let mut sums = vec![[0.0; 2]; size];
            let mut new_cost = 0.0;
            for (&value, &weight) in values.iter().zip(weights) {
                let distance = |entry: &f64| (entry - f64::from(value)).abs();
                let nearest =
                    (0..size).min_by(|&a, &b| distance(&entries[a]).total_cmp(&distance(&entries[b])));
                let nearest = nearest.unwrap();
                new_cost += weight * distance(&entries[nearest]).powi(2);
                sums[nearest][0] += weight;
                sums[nearest][1] += weight * f64::from(value);
            }
            if new_cost >= cost {
                return cost;
            }
            cost = new_cost;
            for (entry, [weight, sum]) in entries.iter_mut().zip(sums) {
                *entry = if weight > 0.0 { sum / weight } else { *entry };
            }
        }
    }

    #[test]
    fn lloyds_iterations_are_never_better_on_the_tensors_of_a_model() {
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny-lfm3");
        let checkpoint = lone_lfm::Checkpoint::open(dir.as_ref()).unwrap();
        let mut gains = Vec::new();
        for layer in 0..checkpoint.config().layers.len() {
            let tensors = checkpoint.layer(layer);
            for matrix in [tensors.w1, tensors.w2, tensors.w3] {
                let histogram = Histogram::of(matrix.to_f32().into_iter().map(|value| (value, 1.0)));
                for size in [16, 64] {
                    let (exact, lloyd) = (optimal_palette(&histogram, size).cost, lloyd(&histogram, size));
                    assert!(exact <= lloyd * (1.0 + 1e-9), "{}: {exact} against {lloyd}", matrix.name());
                    gains.push(lloyd / exact);
                }
            }
        }
        assert!(gains.iter().any(|&gain| gain > 1.01), "Lloyd's iterations get stuck somewhere: {gains:?}");
    }

    proptest! {
        #[test]
        fn no_way_to_cut_is_better(
            pairs in prop::collection::vec((-8.0f32..8.0, 0.01f64..10.0), 1..12),
            size in 1usize..6,
        ) {
            let histogram = Histogram::of(pairs);
            let mut sums = Sums::default();
            sums.take(&histogram);
            let exact = optimal_palette(&histogram, size).cost;
            let brute = brute_force(&sums, 0, size.min(sums.len()));
            prop_assert!((exact - brute).abs() <= 1e-9 * (1.0 + brute), "{exact} {brute}");
        }
    }
}
