//! Graphs as text, for tests of rewrites.
//!
//! ```text
//! f(x: fp16(1,32,1,2)) -> (y)
//!   n = rms_norm(x, w) axis 1, epsilon 1e-5
//!   y = projection(n, w1, x) alpha 0.0625, residual
//! ```

use std::fmt;

use super::graph::{Graph, Node};
use super::kind::{Attention, Kind, Projection, Range};

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |&id: &lone_mil::ValueId| self.get(id).name.clone();
        let inputs: Vec<String> =
            self.inputs.iter().map(|&id| format!("{}: {}", self.get(id).name, self.get(id).ty)).collect();
        let outputs: Vec<String> = self.outputs.iter().map(name).collect();
        writeln!(f, "{}({}) -> ({})", self.function, inputs.join(", "), outputs.join(", "))?;
        for Node { kind, inputs, output, .. } in self.nodes.iter().flatten() {
            let inputs: Vec<String> = inputs
                .iter()
                .map(|&id| self.number(id).map_or_else(|| name(&id), |number| number.to_string()))
                .collect();
            writeln!(f, "  {} = {}({}){}", name(output), kind.name(), inputs.join(", "), Parameters(kind))?;
        }
        Ok(())
    }
}

impl Kind {
    /// What it is called in text.
    fn name(&self) -> String {
        match self {
            Kind::Unary(op) => op.to_string(),
            Kind::Binary(op) => op.to_string(),
            Kind::Reduce { op, .. } => op.to_string(),
            Kind::Softmax { .. } => "softmax".into(),
            Kind::Reshape => "reshape".into(),
            Kind::Transpose { .. } => "transpose".into(),
            Kind::Slice { .. } => "slice".into(),
            Kind::Concat { .. } => "concat".into(),
            Kind::Broadcast => "broadcast".into(),
            Kind::Cast => "cast".into(),
            Kind::MatMul { .. } => "matmul".into(),
            Kind::Reference(_) => "reference".into(),
            Kind::Projection(_) => "projection".into(),
            Kind::RmsNorm { .. } => "rms_norm".into(),
            Kind::GatedSilu => "gated_silu".into(),
            Kind::Rope { .. } => "rope".into(),
            Kind::ShortConv { .. } => "short_conv".into(),
            Kind::Attention(_) => "attention".into(),
        }
    }
}

/// The parameters of a kind, as they follow its arguments.
struct Parameters<'a>(&'a Kind);

impl fmt::Display for Parameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Reduce { axes, .. } => write!(f, " axes {axes:?}"),
            Kind::Softmax { axis }
            | Kind::Concat { axis }
            | Kind::Rope { axis }
            | Kind::ShortConv { axis } => {
                write!(f, " axis {axis}")
            }
            Kind::Transpose { perm } => write!(f, " perm {perm:?}"),
            Kind::Slice { ranges } => ranges.iter().try_for_each(|range| write!(f, " {range}")),
            Kind::MatMul { transpose_x, transpose_y } => write!(f, " transpose {transpose_x} {transpose_y}"),
            Kind::Projection(Projection { alpha, bias, residual, .. }) => {
                let flags = [
                    (*alpha != 1.0, format!(" alpha {alpha}")),
                    (*bias, " bias".into()),
                    (*residual, " residual".into()),
                ];
                flags.iter().filter(|(set, _)| *set).try_for_each(|(_, text)| f.write_str(text))
            }
            Kind::RmsNorm { axis, epsilon } => write!(f, " axis {axis}, epsilon {epsilon:e}"),
            Kind::Attention(Attention { heads, groups, queries, head_dim, .. }) => {
                write!(f, " H {heads}, G {groups}, S {queries}, d {head_dim}")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.start, self.len)?;
        if self.step != 1 { write!(f, "*{}", self.step) } else { Ok(()) }
    }
}
