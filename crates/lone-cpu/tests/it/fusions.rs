//! Every fusion: it happens, and computes what the operations it replaces compute.

use crate::graphs::{Net, check};

/// How many of `kinds` are `kind`.
fn count(kinds: &[&str], kind: &str) -> usize {
    kinds.iter().filter(|&&found| found == kind).count()
}

#[test]
fn a_range_safe_norm_is_one_step() {
    for (dims, axis) in [([1, 96, 1, 1], 1), ([1, 96, 1, 5], 1), ([1, 3, 16, 5], 2), ([1, 3, 16, 1], 2)] {
        let kinds = check(|| {
            let mut net = Net::new("f");
            let x = net.input("x", &dims)?;
            let y = net.rms_norm(x, axis)?;
            net.output(y, "y")?;
            net.finish()
        });
        assert_eq!(kinds, ["copy", "rms_norm", "copy"]);
    }
}

#[test]
fn a_plain_norm_is_one_step() {
    let kinds = check(|| {
        let mut net = Net::new("f");
        let x = net.input("x", &[1, 40, 1, 3])?;
        let y = net.plain_norm(x, 1)?;
        net.output(y, "y")?;
        net.finish()
    });
    assert_eq!(kinds, ["copy", "rms_norm", "copy"]);
}

#[test]
fn scales_parts_and_residual_of_a_linear_layer_are_one_step() {
    for s in [1, 4] {
        let kinds = check(|| {
            let mut net = Net::new("f");
            let x = net.input("x", &[1, 64, 1, s])?;
            let x = net.rms_norm(x, 1)?;
            let y = net.linear(x, 64, 4)?;
            let y = net.b.add(x, y)?;
            net.output(y, "y")?;
            net.finish()
        });
        // The residual is read by the projection too, so it is copied into the result first.
        assert_eq!(kinds, ["copy", "rms_norm", "copy", "projection", "copy"]);
    }
}

#[test]
fn a_residual_nobody_else_reads_is_added_to_in_place() {
    let kinds = check(|| {
        let mut net = Net::new("f");
        let x = net.input("x", &[1, 64, 1, 2])?;
        let n = net.rms_norm(x, 1)?;
        let y = net.linear(n, 64, 1)?;
        let y = net.b.add(y, x)?;
        net.output(y, "y")?;
        net.finish()
    });
    assert_eq!(kinds, ["copy", "rms_norm", "projection", "copy"]);
}

#[test]
fn a_bias_is_part_of_its_linear_layer() {
    for s in [1, 3] {
        let kinds = check(|| {
            let mut net = Net::new("f");
            let x = net.input("x", &[1, 32, 1, s])?;
            let (y, bias) = (net.linear(x, 48, 1)?, net.weight(&[1, 48, 1, 1], 1.0)?);
            let y = net.b.add(y, bias)?;
            net.output(y, "y")?;
            net.finish()
        });
        assert_eq!(kinds, ["copy", "binary", "projection", "copy"]);
    }
}

#[test]
fn a_feed_forward_is_two_projections_and_a_gate() {
    let kinds = check(|| {
        let mut net = Net::new("f");
        let x = net.input("x", &[1, 32, 1, 3])?;
        let y = net.feed_forward(x, 80, 2)?;
        net.output(y, "y")?;
        net.finish()
    });
    assert_eq!(kinds, ["copy", "projection", "gated_silu", "projection", "copy"]);
}

#[test]
fn layers_of_one_input_are_one_step_whatever_their_heights() {
    for (heights, steps) in [([48, 16, 30], 1), ([30, 16, 48], 2)] {
        for s in [1, 3] {
            let kinds = check(|| {
                let mut net = Net::new("f");
                let x = net.input("x", &[1, 64, 1, s])?;
                for (i, height) in heights.into_iter().enumerate() {
                    let y = net.linear(x, height, 1)?;
                    net.output(y, &format!("y{i}"))?;
                }
                net.finish()
            });
            assert_eq!(count(&kinds, "projection"), steps, "{heights:?}");
        }
    }
}

#[test]
fn a_head_gate_is_a_sigmoid_and_a_product() {
    for s in [1, 4] {
        let kinds = check(|| {
            let mut net = Net::new("f");
            let (x, n) = (net.input("x", &[1, 4, 8, s])?, net.input("n", &[1, 32, 1, s])?);
            let gate = net.linear(n, 4, 1)?;
            let gate = net.sigmoid(gate)?;
            let gate = net.b.reshape(gate, &[1, 4, 1, s as i32])?;
            let y = net.b.mul(x, gate)?;
            net.output(y, "y")?;
            net.finish()
        });
        assert_eq!(kinds, ["copy", "projection", "unary", "copy", "binary", "copy"]);
    }
}

#[test]
fn rotary_embedding_is_one_step() {
    for s in [1, 4] {
        let kinds = check(|| {
            let mut net = Net::new("f");
            let x = net.input("x", &[1, 3, 16, s])?;
            let (cos, sin) = (net.input("cos", &[1, 1, 16, s])?, net.input("sin", &[1, 1, 16, s])?);
            let y = net.rope(x, cos, sin)?;
            net.output(y, "y")?;
            net.finish()
        });
        assert_eq!(kinds, ["copy", "copy", "copy", "rope", "copy"]);
    }
}

#[test]
fn the_taps_of_a_short_convolution_are_one_step() {
    for (s, taps) in [(1, 3), (5, 3), (1, 7), (8, 7), (2, 2)] {
        let kinds = check(|| {
            let mut net = Net::new("f");
            let v = net.input("v", &[1, 40, 1, s])?;
            let past = net.input("past", &[1, 40, taps - 1, 1])?;
            let (y, window) = net.short_conv(v, past)?;
            net.output(y, "y")?;
            net.output(window, "window")?;
            net.finish()
        });
        assert_eq!(count(&kinds, "short_conv"), 1);
        assert_eq!(count(&kinds, "binary"), 0);
    }
}

#[test]
fn attention_reads_the_past_where_it_is() {
    for (s, t) in [(1, 24), (5, 24), (3, 1)] {
        let kinds = check(|| {
            let mut net = Net::new("f");
            let q = net.input("q", &[1, 6, 16, s])?;
            let (k, v) = (net.input("k", &[1, 2, 16, s])?, net.input("v", &[1, 2, 16, s])?);
            let mask = net.input("mask", &[1, 1, s, t + s])?;
            let past = [net.input("k_0", &[1, 2, t, 16])?, net.input("v_0", &[1, 2, t, 16])?];
            let y = net.attention([q, k, v], &[past], &[mask])?;
            net.output(y, "y")?;
            net.finish()
        });
        assert_eq!(count(&kinds, "attention"), 1);
        assert_eq!(count(&kinds, "read_mask"), 1);
        assert_eq!(count(&kinds, "matmul") + count(&kinds, "softmax"), 0);
        assert_eq!(count(&kinds, "binary"), 1, "the scale of the query");
    }
}

#[test]
fn attention_over_segments_is_attention() {
    for s in [1, 4] {
        let kinds = check(|| {
            let mut net = Net::new("f");
            let q = net.input("q", &[1, 4, 8, s])?;
            let (k, v) = (net.input("k", &[1, 2, 8, s])?, net.input("v", &[1, 2, 8, s])?);
            let (mut past, mut masks) = (Vec::new(), Vec::new());
            for (j, rows) in [16, 16, 5].into_iter().enumerate() {
                masks.push(net.input(&format!("mask_{j}"), &[1, 1, s, rows])?);
                let keys = net.input(&format!("k_{j}"), &[1, 2, rows, 8])?;
                past.push([keys, net.input(&format!("v_{j}"), &[1, 2, rows, 8])?]);
            }
            masks.push(net.input("mask_new", &[1, 1, s, s])?);
            let y = net.attention([q, k, v], &past, &masks)?;
            net.output(y, "y")?;
            net.finish()
        });
        assert_eq!(count(&kinds, "attention"), 1);
        assert_eq!(count(&kinds, "matmul") + count(&kinds, "softmax"), 0);
        assert_eq!(count(&kinds, "binary"), 1, "the scale of the query");
    }
}
