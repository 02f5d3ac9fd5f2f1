//! Plans as text: a change of the compiler shows what it changes, a mere refactoring nothing.

use std::num::NonZeroUsize;

use insta::assert_snapshot;
use lone_convert::ConvertOptions;
use lone_cpu::{CpuBackend, CpuOptions, Isa};
use lone_mil::LoadOptions;

use crate::graphs::{Net, Ports, package};
use crate::models::{bundle, options};

/// One thread and scalar code, so that plans are the same on every machine.
fn backend() -> CpuBackend {
    let options =
        CpuOptions { threads: NonZeroUsize::new(1), isa: Isa::named("scalar"), ..CpuOptions::default() };
    CpuBackend::new(options)
}

/// The plans of some functions of one package of a converted model.
fn plans(model: &str, package: &str, functions: &[&str]) -> String {
    let options =
        ConvertOptions { ctx: vec![64], prefill: vec![8], layers_per_model: 8, head_chunks: 1, ..options() };
    let bundle = bundle(model, &options);
    let package = bundle.path().join("bundle").join(package);
    let model = backend().open(&package, &LoadOptions::default()).unwrap();
    functions.iter().map(|function| model.plan(function).unwrap().to_string()).collect()
}

#[test]
fn tiny_lfm2() {
    assert_snapshot!(plans("tiny-lfm2", "chunk_00.mlpackage", &["decode", "prefill"]));
}

#[test]
fn tiny_lfm3() {
    assert_snapshot!(plans("tiny-lfm3", "chunk_00.mlpackage", &["decode", "prefill"]));
}

#[test]
fn tiny_head() {
    assert_snapshot!(plans("tiny-lfm3", "head_00.mlpackage", &["decode", "verify"]));
}

#[test]
fn attention_over_the_longest_context_that_is_converted_is_still_one_step_a_layer() {
    let longest = 1 << 20;
    let options = |ctx| ConvertOptions {
        ctx: vec![ctx],
        decode_only: true,
        layers_per_model: 8,
        head_chunks: 1,
        ..options()
    };
    let longer = options(longest + 1).check_flags().unwrap_err().to_string();
    assert!(longer.starts_with("--ctx must be 1 to 1048576"), "{longer}");

    let bundle = bundle("tiny-lfm3", &options(longest));
    let package = bundle.path().join("bundle/chunk_00.mlpackage");
    let model = backend().open(&package, &LoadOptions::default()).unwrap();
    let plan = model.plan("decode").unwrap().to_string();
    let steps =
        |name: &str| plan.lines().filter(|line| line.split_whitespace().any(|word| word == name)).count();
    assert_eq!((steps("softmax"), steps("attention")), (0, 3));
}

/// A layer of each kind with the dimensions of LFM2-350M.
fn lfm2_350m(queries: usize) -> String {
    let mut net = Net::new("layers");
    net.hollow = true;
    let build = |net: &mut Net| {
        let x = net.input("x", &[1, 1024, 1, queries])?;
        let (cos, sin) = (net.input("cos", &[1, 1, 64, queries])?, net.input("sin", &[1, 1, 64, queries])?);
        let mask = net.input("mask", &[1, 1, queries, 2048 + queries])?;
        let conv = net.input("conv", &[1, 1024, 2, 1])?;
        let past = [net.input("k", &[1, 8, 2048, 64])?, net.input("v", &[1, 8, 2048, 64])?];
        let x = net.conv_layer(x, conv, 4608)?;
        let x = net.attention_layer(x, [cos, sin, mask], past, 4608)?;
        net.output(x, "out")
    };
    build(&mut net).unwrap();
    let (function, weights) = net.finish().unwrap();
    let model = backend().compile(package(vec![function], &weights), &LoadOptions::default()).unwrap();
    model.plan("layers").unwrap().to_string()
}

#[test]
fn lfm2_350m_decode() {
    assert_snapshot!(lfm2_350m(1));
}

#[test]
fn lfm2_350m_prefill() {
    assert_snapshot!(lfm2_350m(64));
}

#[test]
fn running_a_plan_allocates_nothing() {
    let bundle = bundle("tiny-lfm3", &options());
    for package in ["chunk_00.mlpackage", "chunk_01.mlpackage", "chunk_02.mlpackage", "head_00.mlpackage"] {
        let package = bundle.path().join("bundle").join(package);
        let mut model = backend().open(&package, &LoadOptions::default()).unwrap();
        for function in ["decode", "verify"] {
            let mut ports = Ports::zeros(&model, function);
            // The first pass may make room for what a mask leaves visible.
            ports.count_allocations(&mut model, function);
            assert_eq!(ports.count_allocations(&mut model, function), 0, "{} {function}", package.display());
        }
    }
}
