//! The K-tap depthwise convolution, spelled out as multiply-adds over slices of a window.

use lone_mil::ValueId;

use super::{Rewrite, terms};
use crate::compile::graph::{Graph, Node};
use crate::compile::kind::{Binary, Kind, Range};

/// `Σ_k mul(window[k..k+S], w_k)` over all the slices of S that a window of K-1+S has.
pub(super) fn short_conv(graph: &Graph, node: &Node) -> Option<Rewrite> {
    if node.kind != Kind::Binary(Binary::Add) {
        return None;
    }
    let terms = terms(graph, Binary::Add, &node.inputs);
    let mut taps = terms.into_iter().map(|term| Tap::of(graph, term)).collect::<Option<Vec<_>>>()?;
    taps.sort_by_key(|tap| tap.start);
    let first = taps[0];
    let (window, axis) = (first.window, first.axis);
    let one_window =
        taps.iter().enumerate().all(|(k, tap)| *tap == Tap { start: k, weight: tap.weight, ..first });
    let dims = graph.dims(window);
    let whole = dims[axis] + 1 == taps.len() + first.len;
    let fits = one_window && whole && dims[axis + 1..].iter().all(|&dim| dim == 1);
    fits.then(|| {
        let weights = taps.iter().map(|tap| tap.weight);
        Rewrite { kind: Kind::ShortConv { axis }, inputs: [window].into_iter().chain(weights).collect() }
    })
}

/// One term: the slice of `window` that begins at `start` of `axis`, times a weight per channel.
#[derive(Clone, Copy, PartialEq)]
struct Tap {
    window: ValueId,
    axis: usize,
    start: usize,
    len: usize,
    weight: ValueId,
}

impl Tap {
    fn of(graph: &Graph, term: ValueId) -> Option<Self> {
        let (Kind::Binary(Binary::Mul), inputs) = graph.made_by(term)? else { return None };
        [[inputs[0], inputs[1]], [inputs[1], inputs[0]]].into_iter().find_map(|[slice, weight]| {
            let (Kind::Slice { ranges }, inputs) = graph.made_by(slice)? else { return None };
            let (window, dims) = (inputs[0], graph.dims(inputs[0]));
            let axis = (0..dims.len()).find(|&axis| ranges[axis].len != dims[axis])?;
            let Range { start, len, .. } = ranges[axis];
            let per_channel = [&dims[..axis], &vec![1; dims.len() - axis]].concat();
            let fits = *ranges == Range::along(dims, axis, start, len)
                && graph.get(weight).constant.is_some()
                && graph.dims(weight) == per_channel;
            fits.then_some(Tap { window, axis, start, len, weight })
        })
    }
}
