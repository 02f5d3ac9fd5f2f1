//! The suite of operations on every instruction set, fused and unfused.

use std::num::NonZeroUsize;

use lone_cpu::{CpuBackend, CpuOptions, Isa};
use lone_testing::{Tolerances, run_suite};

#[test]
fn every_operation_runs_on_every_instruction_set() {
    for isa in Isa::available() {
        check(isa, true);
    }
}

#[test]
fn every_operation_runs_as_it_is_written() {
    check(Isa::detect(), false);
}

fn check(isa: Isa, fuse: bool) {
    let options = CpuOptions { threads: NonZeroUsize::new(2), isa: Some(isa), fuse, ..CpuOptions::default() };
    let report = run_suite(&CpuBackend::new(options), &Tolerances::CPU);
    assert!(report.failures.is_empty(), "{isa}: {report}");
    assert!(report.unsupported.is_empty(), "{isa}: {:?}", report.unsupported);
}
