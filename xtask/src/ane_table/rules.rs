//! The rules: computations written without them and with them, as docs/graphs.md has it.

use half::f16;
use lone_anesim::Faults;
use lone_mil::{BuildError, FunctionBuilder, ValueId};

use super::program::{Build, Case};
use super::tensors::{Source, product};

/// A rule with what shows its worth.
pub(super) struct Rule {
    pub(super) name: &'static str,
    pub(super) tensors: &'static str,
    pub(super) case: fn() -> Case,
    pub(super) broken: Form,
    pub(super) restored: Form,
    pub(super) fault: &'static str,
    pub(super) without_fault: Faults,
}

/// One way to write it.
pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) measured: f64,
    pub(super) build: Build,
}

/// The feed-forward width of LFM3-1.7B.
pub(super) const WIDE: usize = 6656;
/// The hidden size of LFM3-1.7B.
pub(super) const HIDDEN: usize = 2048;
/// Deviation of all weights.
const DEVIATION: f32 = 0.02;
/// What the weights of wide reductions are multiplied by.
const SCALE: f32 = 16.0;

type Built = Result<ValueId, BuildError>;

pub(super) fn all() -> [Rule; 3] {
    [
        Rule {
            name: "projection, 6656 to 2048",
            tensors: "activations 0.35 silu(g) u with g and u normal of deviation 1, weights normal of deviation 0.02",
            case: wide_projection,
            broken: Form { name: "one sum", measured: 0.9972, build: |b, x, w| b.conv1x1(x[0], w[0]) },
            restored: Form { name: "two halves", measured: 0.999_994, build: in_halves },
            fault: "wide_reduction",
            without_fault: Faults { wide_reduction: false, ..Faults::M1 },
        },
        Rule {
            name: "out_proj, 2048 to 2048",
            tensors: "activations of random sign and log-normal magnitude, median 0.02 and deviation 0.3 of the \
                      logarithm; weights normal of deviation 0.02",
            case: out_projection,
            broken: Form { name: "unscaled", measured: 0.999_16, build: |b, x, w| b.conv1x1(x[0], w[0]) },
            restored: Form { name: "weights times 16", measured: 0.999_999_8, build: scaled },
            fault: "flushed_products",
            without_fault: Faults { flushed_products: false, ..Faults::M1 },
        },
        Rule {
            name: "SiLU gate, 6656",
            tensors: "gates normal of deviation 0.5, what they gate normal of deviation 1",
            case: gate,
            broken: Form { name: "silu", measured: 0.999_35, build: fused_gate },
            restored: Form { name: "x / (1 + exp(-x))", measured: 0.999_991, build: exact_gate },
            fault: "tabled_activations",
            without_fault: Faults { tabled_activations: false, ..Faults::M1 },
        },
    ]
}

/// A projection with its weights whole, then in halves.
pub(super) fn wide_projection() -> Case {
    let mut source = Source::new(1);
    let x = source.gated(WIDE, 0.35);
    let weight = source.normal(HIDDEN * WIDE, DEVIATION);
    let exact = product(&weight, &x);
    let half = |part: usize| {
        let columns = |row: &[f16]| row[part * WIDE / 2..(part + 1) * WIDE / 2].to_vec();
        (WIDE / 2, weight.chunks_exact(WIDE).flat_map(columns).collect())
    };
    let halves = [half(0), half(1)];
    Case { inputs: vec![x], weights: [vec![(WIDE, weight)], halves.into()].concat(), exact }
}

fn in_halves(b: &mut FunctionBuilder, x: &[ValueId], w: &[ValueId]) -> Built {
    let half = (WIDE / 2) as i32;
    let parts = b.split_sizes(x[0], &[half, half], 1)?;
    let (first, second) = (b.conv1x1(parts[0], w[1])?, b.conv1x1(parts[1], w[2])?);
    b.add(first, second)
}

/// A projection with its weights as they are, then scaled.
fn out_projection() -> Case {
    let mut source = Source::new(2);
    let x = source.log_normal(HIDDEN, 0.02, 0.3);
    let weight = source.normal(HIDDEN * HIDDEN, DEVIATION);
    let exact = product(&weight, &x);
    let scaled = weight.iter().map(|w| f16::from_f32(w.to_f32() * SCALE)).collect();
    Case { inputs: vec![x], weights: vec![(HIDDEN, weight), (HIDDEN, scaled)], exact }
}

fn scaled(b: &mut FunctionBuilder, x: &[ValueId], w: &[ValueId]) -> Built {
    let y = b.conv1x1(x[0], w[1])?;
    let back = b.scalar_f16(1.0 / SCALE)?;
    b.mul(y, back)
}

fn gate() -> Case {
    let mut source = Source::new(3);
    let (gate, up) = (source.normal(WIDE, 0.5), source.normal(WIDE, 1.0));
    let exact = gate.iter().zip(&up).map(|(g, u)| g.to_f64() / (1.0 + (-g.to_f64()).exp()) * u.to_f64());
    let exact = exact.collect();
    Case { inputs: vec![gate, up], weights: Vec::new(), exact }
}

fn fused_gate(b: &mut FunctionBuilder, x: &[ValueId], _: &[ValueId]) -> Built {
    let silu = b.silu(x[0])?;
    b.mul(silu, x[1])
}

fn exact_gate(b: &mut FunctionBuilder, x: &[ValueId], _: &[ValueId]) -> Built {
    let (minus_one, one) = (b.scalar_f16(-1.0)?, b.scalar_f16(1.0)?);
    let power = b.mul(x[0], minus_one).and_then(|negative| b.exp(negative))?;
    let below = b.add(power, one)?;
    let silu = b.real_div(x[0], below)?;
    b.mul(silu, x[1])
}
