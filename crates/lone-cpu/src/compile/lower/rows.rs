//! Operations along one axis.

use lone_mil::BackendError;

use super::Lowering;
use crate::compile::graph::Node;
use crate::compile::kind::Reduction;
use crate::steps::{Reduce, RmsNorm, Softmax};

impl Lowering<'_> {
    pub(super) fn rms_norm(&mut self, axis: usize, epsilon: f32, node: &Node) -> Result<(), BackendError> {
        let columns = self.graph.dims(node.output)[axis + 1..].iter().product();
        let (x, weight) = (self.dense(node.inputs[0])?, self.dense(node.inputs[1])?);
        let out = self.result(node);
        self.steps.push(RmsNorm { x, weight, epsilon, columns, out }.into());
        Ok(())
    }

    pub(super) fn softmax(&mut self, axis: usize, node: &Node) -> Result<(), BackendError> {
        // Rows lie along the last axis, so `axis` goes there and, in the view of the result, back.
        let dims = self.graph.dims(node.output);
        let mut perm: Vec<usize> = (0..dims.len()).filter(|&other| other != axis).collect();
        perm.push(axis);
        let mut place = self.place(node.inputs[0])?;
        place.view = place.view.permuted(&perm);
        let (x, copy) = self.copied(&place, place.computed(), self.last_use[node.output.index()]);
        self.steps.push(Softmax { x, columns: dims[axis] }.into());
        self.put(node.output, x, copy.view.permuted(&inverse(&perm)));
        Ok(())
    }

    pub(super) fn reduce(&mut self, op: Reduction, axes: &[usize], node: &Node) -> Result<(), BackendError> {
        let dims = self.graph.dims(node.inputs[0]);
        let len: usize = axes.iter().map(|&axis| dims[axis]).product();
        let long: Vec<usize> =
            (0..dims.len()).filter(|axis| axes.contains(axis) && dims[*axis] > 1).collect();
        let together = |axis: usize| long.contains(&axis) || dims[axis] == 1;
        let (x, inner) = match (long.first(), long.last()) {
            (Some(&first), Some(&last)) if (first..=last).all(together) => {
                (self.dense(node.inputs[0])?, dims[last + 1..].iter().product())
            }
            (None, _) => (self.dense(node.inputs[0])?, 1),
            _ => {
                let mut perm: Vec<usize> = (0..dims.len()).filter(|axis| !axes.contains(axis)).collect();
                perm.extend(axes);
                (self.dense_view(node.inputs[0], |view| view.permuted(&perm))?, 1)
            }
        };
        let out = self.result(node);
        self.steps.push(Reduce { op, x, out, len, inner }.into());
        Ok(())
    }
}

/// The permutation that undoes `perm`.
pub(super) fn inverse(perm: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; perm.len()];
    for (to, &from) in perm.iter().enumerate() {
        inverse[from] = to;
    }
    inverse
}
