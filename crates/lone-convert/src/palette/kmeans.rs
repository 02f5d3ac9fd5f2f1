//! The best palette there is: 1-D k-means, solved exactly.
//!
//! Weights are fp16, so a tensor is a histogram of at most 65 536 values. In one dimension the clusters of an
//! optimal k-means are runs of the sorted values, and the best split of the first `j` values into `m` runs is
//! `best[m][j] = min over i of best[m-1][i] + cost(i, j)`. The cost satisfies the quadrangle inequality, so the
//! best `i` never moves left as `j` grows, and divide and conquer finds a row in O(n log n). No random starts,
//! no iterations: the same histogram always gives the same palette.

use half::f16;

use super::Histogram;

/// Sorted table entries, at most as many as were asked for: fewer when the histogram has fewer values.
#[derive(Debug, Clone, PartialEq)]
pub struct Palette {
    /// Cluster means rounded to fp16, ascending.
    pub entries: Vec<f16>,
    /// Weighted sum of squared errors with the unrounded means.
    pub cost: f64,
}

/// The optimal palette of at most `size` entries.
///
/// # Panics
/// If `size` is 0 or the histogram is empty.
pub fn optimal_palette(histogram: &Histogram, size: usize) -> Palette {
    assert!(size > 0 && !histogram.values.is_empty(), "a palette needs entries and values");
    let sums = Sums::of(histogram);
    let runs = optimal_runs(&sums, size.min(histogram.values.len()));
    let means = runs.windows(2).map(|run| f16::from_f64(sums.mean(run[0], run[1])));
    let cost = runs.windows(2).map(|run| sums.cost(run[0], run[1])).sum();
    Palette { entries: means.collect(), cost }
}

/// Prefix sums of weight, weight * value and weight * value².
struct Sums {
    rows: Vec<[f64; 3]>,
}

impl Sums {
    fn of(histogram: &Histogram) -> Self {
        let mut rows = Vec::with_capacity(histogram.values.len() + 1);
        let mut row = [0.0; 3];
        rows.push(row);
        for (&value, &weight) in histogram.values.iter().zip(&histogram.weights) {
            let value = f64::from(value);
            row = [row[0] + weight, row[1] + weight * value, row[2] + weight * value * value];
            rows.push(row);
        }
        Sums { rows }
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
}

/// Boundaries of the optimal `size` runs: `size + 1` ascending indices from 0 to n.
fn optimal_runs(sums: &Sums, size: usize) -> Vec<usize> {
    let n = sums.len();
    let mut best: Vec<f64> = (0..=n).map(|j| if j == 0 { 0.0 } else { sums.cost(0, j) }).collect();
    let mut starts: Vec<Vec<u32>> = Vec::with_capacity(size.saturating_sub(1));
    for run in 1..size {
        let mut row = Row { sums, previous: &best, best: vec![f64::INFINITY; n + 1], start: vec![0; n + 1] };
        // Run number `run` ends at j and starts at i >= run: each earlier run holds a value at least.
        row.solve(run + 1, n, run, n - 1);
        starts.push(row.start);
        best = row.best;
    }
    let mut boundaries = vec![n];
    let mut end = n;
    for row in starts.iter().rev() {
        end = row[end] as usize;
        boundaries.push(end);
    }
    boundaries.push(0);
    boundaries.reverse();
    boundaries
}

/// One row of the dynamic program.
struct Row<'a> {
    sums: &'a Sums,
    previous: &'a [f64],
    best: Vec<f64>,
    start: Vec<u32>,
}

impl Row<'_> {
    /// Fills `j` in `low..=high`, knowing that the best start lies in `from..=to`.
    fn solve(&mut self, low: usize, high: usize, from: usize, to: usize) {
        if low > high {
            return;
        }
        let j = low + (high - low) / 2;
        let mut at = from;
        for i in from..=to.min(j - 1) {
            let cost = self.previous[i] + self.sums.cost(i, j);
            if cost < self.best[j] {
                self.best[j] = cost;
                at = i;
            }
        }
        self.start[j] = at as u32;
        self.solve(low, j - 1, from, at);
        self.solve(j + 1, high, at, to);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(pairs: &[(f32, f64)]) -> Histogram {
        Histogram::new(pairs.iter().map(|&(value, weight)| (f16::from_f32(value), weight)))
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

    #[test]
    fn as_many_entries_as_values_lose_nothing() {
        let palette = optimal_palette(&histogram(&[(1.0, 1.0), (-2.0, 3.0), (0.5, 1.0)]), 16);
        assert_eq!(palette.entries, [-2.0, 0.5, 1.0].map(f16::from_f32));
        assert_eq!(palette.cost, 0.0);
    }

    #[test]
    fn a_heavy_value_pulls_its_entry() {
        let palette = optimal_palette(&histogram(&[(0.0, 1.0), (1.0, 3.0), (100.0, 1.0)]), 2);
        assert_eq!(palette.entries, [0.75, 100.0].map(f16::from_f32));
    }

    proptest! {
        #[test]
        fn no_way_to_cut_is_better(
            pairs in prop::collection::vec((-8.0f32..8.0, 0.01f64..10.0), 1..12),
            size in 1usize..6,
        ) {
            let histogram = histogram(&pairs);
            let sums = Sums::of(&histogram);
            let exact = optimal_palette(&histogram, size).cost;
            let brute = brute_force(&sums, 0, size.min(sums.len()));
            prop_assert!((exact - brute).abs() <= 1e-9 * (1.0 + brute), "{exact} {brute}");
        }
    }
}
