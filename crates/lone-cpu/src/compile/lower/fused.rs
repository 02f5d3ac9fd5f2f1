//! Fused operations of attention and short convolution.

use lone_mil::{BackendError, DType, Literal, TensorType, ValueId};

use super::{Lowering, MaskUse, Place, Store};
use crate::Kernels;
use crate::arena::{Element, Span};
use crate::compile::graph::Node;
use crate::compile::kind::{self, Range};
use crate::compile::package_error;
use crate::compile::view::View;
use crate::steps::{Attention, Mask, PastRows, ReadMask, Rope, ShortConv};

impl Lowering<'_> {
    pub(super) fn rope(&mut self, axis: usize, node: &Node) -> Result<(), BackendError> {
        let dims = self.graph.dims(node.output);
        let half = dims[axis..].iter().product::<usize>() / 2;
        let x = self.dense(node.inputs[0])?;
        let (cos, sin) = (self.dense(node.inputs[1])?, self.dense(node.inputs[2])?);
        let out = self.result(node);
        self.steps.push(Rope { x, cos, sin, half, out }.into());
        Ok(())
    }

    pub(super) fn short_conv(&mut self, axis: usize, node: &Node) -> Result<(), BackendError> {
        let columns = self.graph.dims(node.output)[axis];
        let window = self.dense(node.inputs[0])?;
        let taps = self.taps(&node.inputs[1..])?;
        let out = self.result(node);
        self.steps.push(ShortConv { window, taps, columns, out }.into());
        Ok(())
    }

    /// Constants w_k (D) as one constant (D,K).
    fn taps(&mut self, weights: &[ValueId]) -> Result<Span, BackendError> {
        let mut columns = Vec::with_capacity(weights.len());
        for &id in weights {
            let taps = self.graph.get(id).constant.as_ref().expect("taps are constants");
            let literal = taps.held(self.blobs).map_err(package_error)?;
            columns.push(
                literal.to_floats().ok_or_else(|| self.unsupported(format!("taps of {}", literal.ty)))?,
            );
        }
        let channels = columns.first().map_or(0, Vec::len);
        let by_channel = (0..channels).flat_map(|channel| columns.iter().map(move |column| column[channel]));
        let bytes: Vec<u8> = by_channel.flat_map(f32::to_le_bytes).collect();
        let literal = Literal::from_bytes(TensorType::new(DType::F32, [channels, weights.len()]), &bytes);
        let place = self.constant(&literal)?;
        Ok(place.dense_span(Element::F32).expect("constants are dense"))
    }

    pub(super) fn attention(&mut self, kind: &kind::Attention, node: &Node) -> Result<(), BackendError> {
        let kind::Attention { heads, groups, queries, head_dim, masks } = *kind;
        let [query, new_keys, new_values, rest @ ..] = node.inputs.as_slice() else {
            unreachable!("attention has a query and new rows")
        };
        let (masks, past) = rest.split_at(masks);
        let past = past
            .chunks_exact(2)
            .map(|pair| PastRows {
                keys: self.port_of(pair[0]),
                values: self.port_of(pair[1]),
                rows: self.graph.get(pair[0]).ty.shape.elements() / (groups * head_dim),
            })
            .collect();
        let (query, new_keys, new_values) =
            (self.dense(*query)?, self.dense(*new_keys)?, self.dense(*new_values)?);
        let (mask, visible) = self.mask(masks, queries)?;
        let out = self.result(node);
        let scratch_len = Kernels::attention_scratch_len(heads, groups, head_dim, queries, self.threads);
        let scratch = self.buffer(Element::F32, scratch_len, self.node);
        let step = Attention {
            heads,
            groups,
            head_dim,
            query,
            past,
            new_keys,
            new_values,
            mask,
            visible,
            out,
            scratch,
        };
        self.steps.push(step.into());
        Ok(())
    }

    fn port_of(&self, id: ValueId) -> usize {
        let input = self.graph.inputs.iter().position(|&input| input == id);
        input.expect("attention is fused over inputs only")
    }

    /// A mask as f16 and the number of what it leaves visible, read when the first attention asks for it. Several
    /// stand side by side.
    fn mask(&mut self, ids: &[ValueId], queries: usize) -> Result<(Mask, usize), BackendError> {
        if let Some(known) = self.masks.iter().position(|known| known.ids == ids) {
            return Ok((self.masks[known].mask, known));
        }
        let places = ids.iter().map(|&id| self.place(id)).collect::<Result<Vec<_>, _>>()?;
        let len: usize = places.iter().map(|place| place.view.elements()).sum();
        let mask = match places.as_slice() {
            [Place { store: Store::Input(port), element: Element::F16, view }] if view.is_dense() => {
                Mask::Input(*port)
            }
            _ => Mask::Arena { span: self.side_by_side(&places, [queries, len / queries]), len },
        };
        let (keys, visible) = (len / queries, self.masks.len());
        self.steps.push(ReadMask { mask, keys, queries, visible }.into());
        self.masks.push(MaskUse { ids: ids.to_vec(), queries, mask });
        Ok((mask, visible))
    }

    /// Matrices (1,1,S,…) of f16 as one of `dims`, kept for the rest of the function.
    fn side_by_side(&mut self, places: &[Place], dims: [usize; 2]) -> Span {
        let span = self.buffer(Element::F16, dims.iter().product(), usize::MAX);
        let whole = View::dense(&[1, 1, dims[0], dims[1]]);
        let mut start = 0;
        for from in places {
            let len = from.view.dims[3];
            let view = whole.sliced(&Range::along(&whole.dims, 3, start, len));
            self.copy(from, &Place { store: Store::Arena(span.buffer), element: Element::F16, view });
            start += len;
        }
        span
    }
}
