//! Convolution over one to three spatial axes.
//!
//! ```text
//! out[n,o,p…] = bias[o] + sum over c, k… of weight[o,c,k…] * x[n, group(o) + c, p*stride + k*dilation - pad …]
//! ```

use super::eval::{Eval, Results};
use super::param::{FLOAT, FLOAT_VECTOR, Fallback, INT, INTS, STR};
use super::{Call, OpError, OpSpec, Param, row};
use crate::interpret::{Rows, View, each_run};
use crate::{Shape, TensorType};

pub(super) static ROWS: &[OpSpec] = &[row(
    "conv",
    &[
        Param::new("x", FLOAT),
        Param::new("weight", FLOAT),
        Param::constant("bias", FLOAT_VECTOR).like("weight").optional(),
        Param::constant("strides", INTS).or(Fallback::Spatial { value: 1, per_axis: 1 }),
        Param::constant("pad_type", STR).or(Fallback::Str("valid")),
        Param::constant("pad", INTS).or(Fallback::Spatial { value: 0, per_axis: 2 }),
        Param::constant("dilations", INTS).or(Fallback::Spatial { value: 1, per_axis: 1 }),
        Param::constant("groups", INT).or(Fallback::Int(1)),
    ],
    infer,
    eval,
    "x (N,C,H,W), weight (O,C/groups,KH,KW), bias (O) -> (N,O,H',W'); likewise for one and three spatial axes",
)];

/// The numbers of a `conv`, each vector with one entry per spatial axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Convolution {
    /// Extents of the kernel.
    pub kernel: Vec<usize>,
    /// Steps between positions.
    pub strides: Vec<usize>,
    /// Steps between taps.
    pub dilations: Vec<usize>,
    /// Zeros before the first element.
    pub pad_before: Vec<usize>,
    /// Extents of the result.
    pub out: Vec<usize>,
    /// Into how many groups the channels are parted.
    pub groups: usize,
}

impl Convolution {
    /// The numbers of the convolution that `call` asks for.
    ///
    /// # Errors
    /// [`OpError`] for numbers that make no convolution.
    pub fn of(call: &Call) -> Result<Self, OpError> {
        let (x, weight) = (call.shape("x"), call.shape("weight"));
        if !(3..=5).contains(&x.len()) {
            return Err(call.wrong_type("x", "(N,C,…) with one to three spatial axes"));
        }
        if weight.len() != x.len() {
            return Err(call.wrong_type("weight", format!("rank {}, that of x {x}", x.len())));
        }
        let spatial = x.len() - 2;
        let kernel = weight[2..].to_vec();
        let strides = positive(call, "strides", spatial)?;
        let dilations = positive(call, "dilations", spatial)?;
        let groups = usize::try_from(call.int("groups")?).unwrap_or(0);
        if groups == 0 || x[1] % groups != 0 || weight[0] % groups != 0 {
            let expected = format!("a divisor of {} input and {} output channels", x[1], weight[0]);
            return Err(call.wrong("groups", expected, call.int("groups")?));
        }
        if weight[1] != x[1] / groups {
            let expected = format!("(O,{}…) for x {x} in {groups} groups", x[1] / groups);
            return Err(call.wrong_type("weight", expected));
        }
        let (mut pad_before, mut out) = (Vec::new(), Vec::new());
        for axis in 0..spatial {
            let reach = reach(kernel[axis], dilations[axis]);
            let reach = reach.ok_or_else(|| call.wrong("dilations", "a span that can be counted", "more"))?;
            let (before, after) = pads(call, axis, x[axis + 2], reach, strides[axis])?;
            let padded = before.checked_add(after).and_then(|pad| pad.checked_add(x[axis + 2]));
            let steps = padded.and_then(|padded| padded.checked_sub(reach)).ok_or_else(|| {
                call.wrong_type("weight", format!("a kernel that fits into the padded x {x}"))
            })?;
            pad_before.push(before);
            out.push(steps / strides[axis] + 1);
        }
        Ok(Convolution { kernel, strides, dilations, pad_before, out, groups })
    }
}

/// The span of a dilated kernel.
fn reach(kernel: usize, dilation: usize) -> Option<usize> {
    (kernel - 1).checked_mul(dilation)?.checked_add(1)
}

fn positive(call: &Call, name: &'static str, count: usize) -> Result<Vec<usize>, OpError> {
    let ints = call.ints_of_len(name, count)?;
    let sizes = ints.iter().map(|&v| usize::try_from(v).ok().filter(|&v| v > 0));
    sizes.collect::<Option<_>>().ok_or_else(|| call.wrong(name, "positive numbers", format!("{ints:?}")))
}

/// Zeros before and after spatial axis `axis` of extent `extent`.
fn pads(
    call: &Call,
    axis: usize,
    extent: usize,
    reach: usize,
    stride: usize,
) -> Result<(usize, usize), OpError> {
    let same =
        (extent.div_ceil(stride) - 1).saturating_mul(stride).saturating_add(reach).saturating_sub(extent);
    match call.str("pad_type")? {
        "valid" => Ok((0, 0)),
        "same" => Ok((same / 2, same - same / 2)),
        "same_lower" => Ok((same - same / 2, same / 2)),
        "custom" => {
            let pad = call.ints_of_len("pad", 2 * (call.shape("x").len() - 2))?;
            match (usize::try_from(pad[2 * axis]), usize::try_from(pad[2 * axis + 1])) {
                (Ok(before), Ok(after)) => Ok((before, after)),
                _ => Err(call.wrong("pad", "no negative number", format!("{pad:?}"))),
            }
        }
        other => Err(call.wrong("pad_type", "valid, same, same_lower or custom", other)),
    }
}

fn infer(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let numbers = Convolution::of(call)?;
    let (x, weight) = (call.shape("x"), call.shape("weight"));
    if call.has("bias") && **call.shape("bias") != [weight[0]] {
        return Err(call.wrong_type("bias", format!("({}), one per output channel", weight[0])));
    }
    if !call.is_constant("weight") && numbers.dilations.iter().any(|&d| d > 1) {
        return Err(call.wrong("dilations", "1 when weight is computed", format!("{:?}", numbers.dilations)));
    }
    let mut shape = vec![x[0], weight[0]];
    shape.extend(&numbers.out);
    Ok(vec![TensorType::new(call.dtype("x"), Shape::new(shape))])
}

fn eval<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let conv = Convolution::of(e.call)?;
    let (shape, weight) = (e.shape("x"), e.shape("weight"));
    let (images, channels, features) = (shape[0], weight[1], weight[0]);
    let area: usize = shape[2..].iter().product();
    let positions: usize = conv.out.iter().product();
    let row_len = channels * conv.kernel.iter().product::<usize>();
    let (x, bias) = (e.floats("x"), e.opt_floats("bias"));
    let mut out = vec![0.0; images * features * positions];
    let per_group = features / conv.groups;
    // Both x and the result are parted by image and group.
    for (part, out) in out.chunks_exact_mut(per_group * positions).enumerate() {
        let patches = conv.patches(&x[part * channels * area..][..channels * area], channels, &shape[2..]);
        let first = part % conv.groups * per_group;
        each_run(out, positions, row_len, |row, out| {
            let mut rows = Rows::of(e.tensor("weight"), row_len);
            for (feature, out) in (first + row..).zip(out.chunks_exact_mut(positions)) {
                let start = bias.as_ref().map_or(0.0, |bias| bias[feature]);
                let row = rows.get(feature);
                for (out, patch) in out.iter_mut().zip(patches.chunks_exact(row_len)) {
                    *out = e.numerics.dot(row, patch, start);
                }
            }
        });
    }
    e.computed(out)
}

impl Convolution {
    /// What each output position multiplies with a row of weights: x `(channels, extents…)` -> `(positions,
    /// channels, kernel…)`, zeros where the kernel reaches into the padding.
    fn patches(&self, x: &[f32], channels: usize, extents: &[usize]) -> Vec<f32> {
        let area: usize = extents.iter().product();
        if self.kernel.iter().all(|&k| k == 1)
            && self.out == extents
            && self.pad_before.iter().all(|&p| p == 0)
        {
            return View::permuted(&Shape::from([channels, area]), &[1, 0]).of(x);
        }
        let taps: usize = self.kernel.iter().product();
        let positions: usize = self.out.iter().product();
        let mut patches = vec![0.0; positions * channels * taps];
        for (position, patch) in patches.chunks_exact_mut(channels * taps).enumerate() {
            for tap in 0..taps {
                let Some(source) = self.source(position, tap, extents) else { continue };
                for channel in 0..channels {
                    patch[channel * taps + tap] = x[channel * area + source];
                }
            }
        }
        patches
    }

    /// Where in a channel the tap of a position reads; `None` in the padding.
    fn source(&self, mut position: usize, mut tap: usize, extents: &[usize]) -> Option<usize> {
        let (mut source, mut stride) = (0, 1);
        for axis in (0..extents.len()).rev() {
            let at = position % self.out[axis] * self.strides[axis]
                + tap % self.kernel[axis] * self.dilations[axis];
            let at = at.checked_sub(self.pad_before[axis]).filter(|&at| at < extents[axis])?;
            source += at * stride;
            stride *= extents[axis];
            position /= self.out[axis];
            tap /= self.kernel[axis];
        }
        Some(source)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::{f16, infer, ints};
    use crate::Given;

    fn conv(x: &[usize], weight: &[usize], constants: &[(&str, Given)]) -> String {
        infer("conv", &[("x", f16(x)), ("weight", f16(weight))], constants)
    }

    #[test]
    fn extents_follow_from_kernel_strides_padding_and_dilations() {
        let custom = || ("pad_type", "custom".into());
        let same = |pad: &str| [("pad_type", pad.into()), ("strides", ints(&[2, 2]))];
        let cases = [
            (conv(&[1, 4, 9, 8], &[6, 4, 3, 2], &[]), "fp16(1,6,7,7)"),
            (conv(&[1, 4, 9, 8], &[6, 4, 3, 2], &[("strides", ints(&[2, 3]))]), "fp16(1,6,4,3)"),
            (conv(&[1, 4, 9, 8], &[6, 4, 3, 2], &[custom(), ("pad", ints(&[1, 1, 2, 0]))]), "fp16(1,6,9,9)"),
            (conv(&[1, 4, 9, 8], &[6, 4, 3, 2], &same("same")), "fp16(1,6,5,4)"),
            (conv(&[1, 4, 9, 8], &[6, 4, 3, 2], &same("same_lower")), "fp16(1,6,5,4)"),
            (conv(&[2, 4, 9], &[8, 2, 9], &[("groups", 2.into())]), "fp16(2,8,1)"),
            (conv(&[1, 1, 5, 5, 5], &[1, 1, 2, 3, 4], &[]), "fp16(1,1,4,3,2)"),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn what_makes_no_convolution_is_refused() {
        let (x, w) = ([1, 4, 9, 8], [6, 4, 3, 2]);
        let cases = [
            (
                conv(&[4, 9], &w, &[]),
                "parameter `x`: expected (N,C,…) with one to three spatial axes, found fp16(4,9)",
            ),
            (
                conv(&x, &[6, 4, 3], &[]),
                "parameter `weight`: expected rank 4, that of x (1,4,9,8), found fp16(6,4,3)",
            ),
            (
                conv(&x, &[6, 2, 3, 2], &[]),
                "parameter `weight`: expected (O,4…) for x (1,4,9,8) in 1 groups, found fp16(6,2,3,2)",
            ),
            (
                conv(&x, &[6, 4, 10, 2], &[]),
                "parameter `weight`: expected a kernel that fits into the padded x (1,4,9,8), found fp16(6,4,10,2)",
            ),
            (
                conv(&x, &w, &[("groups", 0.into())]),
                "parameter `groups`: expected a divisor of 4 input and 6 output channels, found 0",
            ),
            (
                conv(&x, &w, &[("strides", ints(&[0, 1]))]),
                "parameter `strides`: expected positive numbers, found [0, 1]",
            ),
            (conv(&x, &w, &[("strides", ints(&[1]))]), "parameter `strides`: expected 2 values, found 1"),
            (
                conv(&x, &w, &[("dilations", ints(&[2, 1]))]),
                "parameter `dilations`: expected 1 when weight is computed, found [2, 1]",
            ),
            (
                conv(&x, &w, &[("pad_type", "full".into())]),
                "parameter `pad_type`: expected valid, same, same_lower or custom, found full",
            ),
            (
                conv(&x, &w, &[("pad_type", "custom".into()), ("pad", ints(&[-1, 0, 0, 0]))]),
                "parameter `pad`: expected no negative number, found [-1, 0, 0, 0]",
            ),
            (
                conv(&x, &w, &[("pad_type", "same".into()), ("dilations", ints(&[i32::MAX, 1]))]),
                "parameter `dilations`: expected 1 when weight is computed, found [2147483647, 1]",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }
}
