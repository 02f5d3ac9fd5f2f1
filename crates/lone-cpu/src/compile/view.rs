//! Views: which elements of a buffer a tensor is made of, so that moving axes about costs nothing.
//!
//! ```text
//! x (2,3) dense            offset 0  dims 2,3  strides 3,1
//! transpose(x)             offset 0  dims 3,2  strides 1,3
//! its last two rows        offset 1  dims 2,2  strides 1,3
//! ```

use super::kind::Range;

/// A tensor laid over a buffer; everything is counted in elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    /// Where its first element is.
    pub(crate) offset: usize,
    pub(crate) dims: Vec<usize>,
    pub(crate) strides: Vec<isize>,
}

impl View {
    /// Row-major, from the beginning of its buffer.
    pub(crate) fn dense(dims: &[usize]) -> Self {
        let mut strides = vec![1; dims.len()];
        for axis in (1..dims.len()).rev() {
            strides[axis - 1] = strides[axis] * dims[axis] as isize;
        }
        View { offset: 0, dims: dims.to_vec(), strides }
    }

    pub(crate) fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether its elements follow each other in row-major order; axes of 1 do not count.
    pub(crate) fn is_dense(&self) -> bool {
        runs(&self.dims, [&self.strides])
            .iter()
            .rev()
            .try_fold(1, |expected, run| (run.strides[0] == expected).then_some(expected * run.len as isize))
            == Some(self.elements() as isize)
    }

    /// Axis i of the result is axis `perm[i]`.
    pub(crate) fn permuted(&self, perm: &[usize]) -> Self {
        let dims = perm.iter().map(|&axis| self.dims[axis]).collect();
        let strides = perm.iter().map(|&axis| self.strides[axis]).collect();
        View { offset: self.offset, dims, strides }
    }

    /// A run of each axis.
    pub(crate) fn sliced(&self, ranges: &[Range]) -> Self {
        let skipped = ranges.iter().zip(&self.strides).map(|(range, stride)| range.start as isize * stride);
        let offset = self.offset.checked_add_signed(skipped.sum()).expect("slices stay inside their tensor");
        let dims = ranges.iter().map(|range| range.len).collect();
        let strides = ranges.iter().zip(&self.strides).map(|(range, stride)| range.step * stride).collect();
        View { offset, dims, strides }
    }

    /// Repeated along axes of 1, or missing leading axes, until it has `dims`.
    pub(crate) fn broadcast(&self, dims: &[usize]) -> Self {
        let missing = dims.len() - self.dims.len();
        let stride = |axis: usize| match axis.checked_sub(missing) {
            Some(own) if self.dims[own] == dims[axis] => self.strides[own],
            _ => 0,
        };
        View { offset: self.offset, dims: dims.to_vec(), strides: (0..dims.len()).map(stride).collect() }
    }

    /// The same elements in row-major order under other dimensions, unless that takes a copy.
    pub(crate) fn reshaped(&self, dims: &[usize]) -> Option<Self> {
        let mut strides = vec![0; dims.len()];
        let mut end = dims.len();
        for run in runs(&self.dims, [&self.strides]).iter().rev() {
            let mut filled = 1;
            while filled < run.len {
                end = end.checked_sub(1)?;
                strides[end] = run.strides[0] * filled as isize;
                filled *= dims[end];
            }
            if filled != run.len {
                return None;
            }
        }
        Some(View { offset: self.offset, dims: dims.to_vec(), strides })
    }
}

/// Axes that can be walked as one, by N views at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run<const N: usize> {
    pub(crate) len: usize,
    pub(crate) strides: [isize; N],
}

/// The fewest axes by which views with these strides can be walked together, outermost first; none of them is 1.
pub(crate) fn runs<const N: usize>(dims: &[usize], strides: [&[isize]; N]) -> Vec<Run<N>> {
    let mut runs: Vec<Run<N>> = Vec::with_capacity(dims.len());
    for (axis, &len) in dims.iter().enumerate().filter(|&(_, &len)| len != 1) {
        let inner = strides.map(|strides| strides[axis]);
        let continues = |outer: &&mut Run<N>| {
            outer.strides.iter().zip(&inner).all(|(&outer, &inner)| outer == inner * len as isize)
        };
        match runs.last_mut().filter(continues) {
            Some(outer) => *outer = Run { len: outer.len * len, strides: inner },
            None => runs.push(Run { len, strides: inner }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn range(start: usize, len: usize) -> Range {
        Range { start, step: 1, len }
    }

    #[test]
    fn axes_of_one_do_not_make_a_view_sparse() {
        let column = View::dense(&[1, 8, 1, 1]);
        assert!(column.permuted(&[0, 3, 2, 1]).is_dense());
        assert!(!View::dense(&[1, 8, 1, 2]).permuted(&[0, 3, 2, 1]).is_dense());
        assert!(View::dense(&[4, 3]).sliced(&[range(1, 2), range(0, 3)]).is_dense());
        assert!(!View::dense(&[4, 3]).sliced(&[range(0, 4), range(0, 2)]).is_dense());
        assert!(!View::dense(&[1, 3]).broadcast(&[2, 3]).is_dense());
    }

    #[test]
    fn heads_split_off_a_transposed_view_without_a_copy() {
        // (S,H,d) -> (S,H*d) -> its transpose -> (H,d,S)
        let channels = View::dense(&[5, 6]).permuted(&[1, 0]);
        let heads = channels.reshaped(&[2, 3, 5]).unwrap();
        assert_eq!((heads.dims, heads.strides), (vec![2, 3, 5], vec![3, 1, 6]));
        assert_eq!(channels.reshaped(&[5, 6]), None);
        assert_eq!(channels.reshaped(&[30]), None);
    }

    #[test]
    fn a_reshape_may_add_and_drop_axes_of_one() {
        let view = View::dense(&[2, 4]).sliced(&[range(1, 1), range(1, 2)]);
        let reshaped = view.reshaped(&[1, 2, 1]).unwrap();
        assert_eq!((reshaped.offset, reshaped.strides[1]), (5, 1));
    }

    #[test]
    fn a_step_down_starts_at_the_end() {
        let reversed = View::dense(&[4]).sliced(&[Range { start: 3, step: -1, len: 4 }]);
        assert_eq!((reversed.offset, reversed.strides), (3, vec![-1]));
    }

    #[test]
    fn views_that_agree_are_walked_as_one_axis() {
        let (dense, row) = (View::dense(&[2, 3, 4]), View::dense(&[4]).broadcast(&[2, 3, 4]));
        let together = runs(&[2, 3, 4], [&dense.strides, &row.strides]);
        assert_eq!(together, [Run { len: 6, strides: [4, 0] }, Run { len: 4, strides: [1, 1] }]);
    }

    /// The elements of a view, as offsets into its buffer.
    fn elements(view: &View) -> Vec<usize> {
        let mut found = vec![view.offset as isize];
        for (&dim, &stride) in view.dims.iter().zip(&view.strides) {
            found = found.iter().flat_map(|at| (0..dim as isize).map(move |i| at + i * stride)).collect();
        }
        found.into_iter().map(|at| at as usize).collect()
    }

    /// One change of a view, chosen by three numbers; the same for any view of the same dimensions.
    fn change(view: &View, [what, axis, much]: [usize; 3]) -> Option<View> {
        let rank = view.dims.len();
        let axis = axis % rank;
        match what % 4 {
            0 => {
                let mut perm: Vec<usize> = (0..rank).collect();
                perm.swap(axis, much % rank);
                Some(view.permuted(&perm))
            }
            1 => {
                let start = much % view.dims[axis];
                Some(view.sliced(&Range::along(&view.dims, axis, start, view.dims[axis] - start)))
            }
            2 => {
                let mut dims = view.dims.clone();
                let merged: usize = dims.drain(axis..rank.min(axis + 2)).product();
                dims.insert(axis, merged);
                view.reshaped(&dims)
            }
            _ => {
                let mut ranges = Range::along(&view.dims, axis, 0, view.dims[axis]);
                ranges[axis] = Range { start: view.dims[axis] - 1, step: -1, len: view.dims[axis] };
                Some(view.sliced(&ranges))
            }
        }
    }

    proptest! {
        #[test]
        fn a_view_of_a_view_has_the_elements_of_a_view_of_a_copy(
            dims in vec(1usize..5, 1..5),
            changes in vec([0usize..4, 0..5, 0..5], 0..8),
        ) {
            let (mut view, mut copy) = (View::dense(&dims), elements(&View::dense(&dims)));
            for numbers in changes {
                let of_copy = change(&View::dense(&view.dims), numbers).expect("a dense tensor has every view");
                copy = elements(&of_copy).into_iter().map(|i| copy[i]).collect();
                // A reshape that takes a copy ends the chain.
                let Some(changed) = change(&view, numbers) else { return Ok(()) };
                prop_assert_eq!(&changed.dims, &of_copy.dims);
                view = changed;
                prop_assert_eq!(elements(&view), copy.clone());
                prop_assert_eq!(view.is_dense(), copy.windows(2).all(|pair| pair[1] == pair[0] + 1));
            }
        }
    }
}
