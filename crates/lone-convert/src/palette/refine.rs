//! Tables and indices improved in turn, given what a batch's errors cost.

use ndarray::{Array2, Axis, Zip};

use super::batch::{Batch, Setting, finite, nearest};

impl Batch<'_> {
    /// Moves indices one at a time to where e H eᵀ is least, all else being equal. `products` are e H, before and
    /// after.
    pub(super) fn move_indices(&mut self, products: &mut Array2<f32>) {
        let Setting { sensitivity, part, parts, group_rows, .. } = self.setting;
        for column in 0..self.weights.ncols() {
            let moments = sensitivity.moments.row(column);
            for row in 0..self.weights.nrows() {
                let table = self.tables.row(row / group_rows * parts + part[column]);
                let table = table.to_slice().expect("rows lie in one piece");
                let index = usize::from(self.indices[[row, column]]);
                let better = nearest(table, table[index] + products[[row, column]] / moments[column]);
                if table[better] != table[index] {
                    let change = table[index] - table[better];
                    self.indices[[row, column]] = better as u8;
                    self.errors[[row, column]] += change;
                    products.row_mut(row).scaled_add(change, &moments);
                }
            }
        }
    }

    /// Moves all entries towards the least e H eᵀ for the indices as they are, by conjugate gradients over each
    /// group's tables. `products` are e H.
    pub(super) fn move_entries(&mut self, products: &Array2<f32>, iterations: usize) {
        let curvature = self.by_entry(&self.diagonals());
        let precondition = |residual: &Array2<f32>| {
            let mut result = residual.clone();
            result.zip_mut_with(&curvature, |r, &c| *r = if c > 0.0 { *r / c } else { 0.0 });
            result
        };
        let mut residual = self.by_entry(products);
        let mut direction = precondition(&residual);
        let mut gains = self.dots(&residual, &direction);
        let mut steps = Array2::zeros(self.tables.raw_dim());
        for _ in 0..iterations {
            let image = self.by_entry(&self.spread(&direction).dot(&self.setting.sensitivity.moments));
            let lengths = ratios(&gains, &self.dots(&direction, &image));
            self.add_scaled(&mut steps, &lengths, &direction);
            let back: Vec<f32> = lengths.iter().map(|length| -length).collect();
            self.add_scaled(&mut residual, &back, &image);
            let next = precondition(&residual);
            let next_gains = self.dots(&residual, &next);
            let mut turned = next;
            self.add_scaled(&mut turned, &ratios(&next_gains, &gains), &direction);
            (direction, gains) = (turned, next_gains);
        }
        self.tables.zip_mut_with(&steps, |entry, step| *entry = finite(*entry + step).to_f32());
        self.sort_tables();
        self.update_errors();
    }

    /// The diagonal of H for every row, (R,C).
    fn diagonals(&self) -> Array2<f32> {
        let diagonal = self.setting.sensitivity.moments.diag();
        diagonal.broadcast(self.weights.raw_dim()).expect("a row has the columns of H").to_owned()
    }

    /// Sums of `values` (R,C) over the weights of each entry, (tables, entries).
    fn by_entry(&self, values: &Array2<f32>) -> Array2<f32> {
        let Setting { part, parts, group_rows, .. } = self.setting;
        let mut sums: Array2<f64> = Array2::zeros(self.tables.raw_dim());
        Zip::indexed(values).and(&self.indices).for_each(|(row, column), &value, &index| {
            let table = row / group_rows * parts + part[column];
            sums[[table, usize::from(index)]] += f64::from(value);
        });
        sums.mapv(|sum| sum as f32)
    }

    /// Inner products by group, of values (tables, entries).
    fn dots(&self, a: &Array2<f32>, b: &Array2<f32>) -> Vec<f64> {
        let products = Zip::from(a).and(b).map_collect(|&a, &b| f64::from(a) * f64::from(b));
        (0..self.groups()).map(|group| products.slice_axis(Axis(0), self.tables_of(group)).sum()).collect()
    }

    /// Adds `b` to `a`, (tables, entries), times the factor of each group.
    fn add_scaled(&self, a: &mut Array2<f32>, factors: &[f32], b: &Array2<f32>) {
        for (group, &factor) in factors.iter().enumerate() {
            let tables = self.tables_of(group);
            a.slice_axis_mut(Axis(0), tables).scaled_add(factor, &b.slice_axis(Axis(0), tables));
        }
    }

    /// Puts entries back into ascending order, and indices after them.
    fn sort_tables(&mut self) {
        let Setting { part, parts, group_rows, entries, .. } = self.setting;
        let mut places: Array2<u8> = Array2::zeros(self.tables.raw_dim());
        for (mut table, mut places) in self.tables.rows_mut().into_iter().zip(places.rows_mut()) {
            let unsorted = table.to_owned();
            let mut order: Vec<usize> = (0..entries).collect();
            order.sort_by(|&a, &b| unsorted[a].total_cmp(&unsorted[b]));
            for (to, from) in order.into_iter().enumerate() {
                table[to] = unsorted[from];
                places[from] = to as u8;
            }
        }
        Zip::indexed(&mut self.indices).for_each(|(row, column), index| {
            *index = places[[row / group_rows * parts + part[column], usize::from(*index)]];
        });
    }
}

/// Of each pair; nothing where there is nothing to gain.
fn ratios(a: &[f64], b: &[f64]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| if *a > 0.0 && *b > 0.0 { (a / b) as f32 } else { 0.0 }).collect()
}
