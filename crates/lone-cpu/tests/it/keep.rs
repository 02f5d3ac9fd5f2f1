//! Values to keep: extra outputs that no fusion removes.

use lone_cpu::Isa;
use lone_mil::{BackendError, Keep, LoadOptions, Signature};

use crate::graphs::{Net, assert_close, backend, inputs, package, run};

fn keep(values: &[&str]) -> LoadOptions {
    let keep = values.iter().map(|&value| Keep { function: "f".into(), value: value.into() });
    LoadOptions { keep: keep.collect(), ..LoadOptions::default() }
}

/// A feed-forward whose norm, gate and sum have names, and its weights.
fn feed_forward() -> (lone_mil::Function, Vec<u8>) {
    let mut net = Net::new("f");
    let build = |net: &mut Net| {
        let x = net.input("x", &[1, 32, 1, 3])?;
        let n = net.rms_norm(x, 1)?;
        let n = net.b.name(n, "normal")?;
        let gate = net.linear(n, 64, 1)?;
        let gate = net.b.name(gate, "gate")?;
        let (silu, up) = (net.silu(gate)?, net.linear(n, 64, 1)?);
        let product = net.b.mul(silu, up)?;
        let down = net.linear(product, 32, 2)?;
        let down = net.b.name(down, "down")?;
        let y = net.b.add(x, down)?;
        net.output(y, "y")
    };
    build(&mut net).unwrap();
    net.finish().unwrap()
}

#[test]
fn kept_values_follow_the_outputs_and_are_what_they_were() {
    let (function, weights) = feed_forward();
    let given = inputs(&function);
    let names = ["down", "normal", "gate"];
    let results = [true, false].map(|fuse| {
        let package = package(vec![function.clone()], &weights);
        let mut model = backend(Isa::detect(), fuse).compile(package, &keep(&names)).unwrap();
        let Signature { outputs, .. } = model.plan("f").unwrap().signature();
        assert!(outputs.iter().map(|port| port.name.as_str()).eq(["y", "down", "normal", "gate"]));
        run(&mut model, "f", &given)
    });
    let [fused, unfused] = results;
    for ((fused, unfused), name) in fused.iter().zip(&unfused).zip(["y", "down", "normal", "gate"]) {
        assert_close(fused, unfused, 1e-3, name);
    }
}

#[test]
fn an_input_can_be_kept_and_so_can_a_value_twice() {
    let (function, weights) = feed_forward();
    let given = inputs(&function);
    let package = package(vec![function], &weights);
    let mut model = backend(Isa::detect(), true).compile(package, &keep(&["x", "gate", "gate"])).unwrap();
    let results = run(&mut model, "f", &given);
    assert!(results[1].iter().copied().eq(given[0].iter().map(|x| x.to_f32())));
    assert_eq!(results[2], results[3]);
}

#[test]
fn a_value_that_is_not_there_is_named() {
    let (function, weights) = feed_forward();
    let refused = backend(Isa::detect(), true).compile(package(vec![function], &weights), &keep(&["z"]));
    let Err(BackendError::NoValue(keep)) = refused else { panic!("there is no z") };
    assert_eq!(keep.value, "z");
}
