//! Rewrites as text: a function of MIL, its graph as imported, and as fused.

use insta::assert_snapshot;
use lone_mil::{BlobFile, Keep, text};

use crate::compile::fuse::fuse;
use crate::compile::graph::Graph;
use crate::compile::import::import;

/// The graph of a function, and what becomes of it when the values `keep` must stay.
fn before_and_after(function: &str, keep: &[&str]) -> String {
    let function = text::parse_function(function).unwrap();
    let keep: Vec<Keep> =
        keep.iter().map(|&value| Keep { function: function.name.clone(), value: value.into() }).collect();
    let imported = import(&function, &keep.iter().collect::<Vec<_>>(), &BlobFile::empty("none")).unwrap();
    let mut fused: Graph = imported.clone();
    fuse(&mut fused);
    fused.drop_dead();
    format!("{imported}{fused}")
}

const NORM: &str = "func f<CoreML8>(x: fp16(1,32,1,2)) -> (y) {
    axes: int32(1) = const(val = int32(1) [1])
    yes: bool() = const(val = bool() 1)
    floor: fp16() = const(val = fp16() 0.0009765625)
    root: fp16() = const(val = fp16() 0.0031623840332)
    none: fp16() = const(val = fp16() 0)
    w: fp16(1,32,1,1) = const(val = fp16(1,32,1,1) blob 64)
    size: fp16(1,32,1,2) = abs(x = x)
    max: fp16(1,1,1,2) = reduce_max(x = size, axes = axes, keep_dims = yes)
    m: fp16(1,1,1,2) = maximum(x = max, y = floor)
    n: fp16(1,32,1,2) = real_div(x = x, y = m)
    s: fp16(1,32,1,2) = mul(x = n, y = n)
    mean: fp16(1,1,1,2) = reduce_mean(x = s, axes = axes, keep_dims = yes)
    e: fp16(1,1,1,2) = real_div(x = root, y = m)
    ee: fp16(1,1,1,2) = mul(x = e, y = e)
    t: fp16(1,1,1,2) = add(x = mean, y = ee)
    r: fp16(1,1,1,2) = rsqrt(x = t, epsilon = none)
    u: fp16(1,32,1,2) = mul(x = n, y = r)
    y: fp16(1,32,1,2) = mul(x = u, y = w)
}";

/// `y = x + 1/16 (w0 x0 + w1 x1)`
const LINEAR: &str = "func f<CoreML8>(x: fp16(1,32,1,2)) -> (y) {
    w0: fp16(32,16,1,1) = const(val = fp16(32,16,1,1) blob 64)
    w1: fp16(32,16,1,1) = const(val = fp16(32,16,1,1) blob 1152)
    two: int32() = const(val = int32() 2)
    one: int32() = const(val = int32() 1)
    back: fp16() = const(val = fp16() 0.0625)
    ones: int32(2) = const(val = int32(2) [1, 1])
    zeros: int32(4) = const(val = int32(4) [0, 0, 0, 0])
    valid: string() = const(val = string() \"valid\")
    x0: fp16(1,16,1,2), x1: fp16(1,16,1,2) = split(x = x, num_splits = two, axis = one) [name = \"halves\"]
    p0: fp16(1,32,1,2) = conv(x = x0, weight = w0, strides = ones, pad_type = valid, pad = zeros, dilations = ones, groups = one)
    s0: fp16(1,32,1,2) = mul(x = p0, y = back)
    p1: fp16(1,32,1,2) = conv(x = x1, weight = w1, strides = ones, pad_type = valid, pad = zeros, dilations = ones, groups = one)
    s1: fp16(1,32,1,2) = mul(x = p1, y = back)
    sum: fp16(1,32,1,2) = add(x = s0, y = s1)
    y: fp16(1,32,1,2) = add(x = x, y = sum)
}";

#[test]
fn a_norm_is_fused() {
    assert_snapshot!(before_and_after(NORM, &[]));
}

#[test]
fn a_split_linear_layer_takes_in_scale_sum_and_residual() {
    assert_snapshot!(before_and_after(LINEAR, &[]));
}

#[test]
fn a_value_to_keep_is_not_fused_away() {
    let text = before_and_after(LINEAR, &["s1", "p0"]);
    let fused = text.split("f(").last().unwrap();
    assert!(fused.contains("  p0 = projection(x0, w0)\n"), "{fused}");
    assert!(fused.contains("  s1 = projection(x1, w1) alpha 0.0625\n"), "{fused}");
}

#[test]
fn a_norm_of_another_axis_than_its_largest_value_stays_as_it_is() {
    let other = NORM
        .replace("val = int32(1) [1])", "val = int32(1) [1])\n    last: int32(1) = const(val = int32(1) [3])")
        .replace(
            "mean: fp16(1,1,1,2) = reduce_mean(x = s, axes = axes",
            "mean: fp16(1,32,1,1) = reduce_mean(x = s, axes = last",
        )
        .replace("t: fp16(1,1,1,2)", "t: fp16(1,32,1,2)")
        .replace("r: fp16(1,1,1,2)", "r: fp16(1,32,1,2)");
    assert!(!before_and_after(&other, &[]).contains("rms_norm"));
}
