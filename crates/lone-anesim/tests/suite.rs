//! The suite of operations on the simulated engine. What the engine cannot do, or does badly, is listed case by case.

use lone_anesim::{AneSim, Faults};
use lone_testing::{Report, Tolerances, run_suite};

/// The engine has no fp32.
const REFUSED: [&str; 3] = ["matmul of fp32", "softmax along the last axis", "softmax along channels"];
/// A `reduce_sum` over so many is a sum in fp16.
const LOST: [&str; 1] = ["reductions over 1031 channels"];

fn refused(report: &Report) -> Vec<&str> {
    report.unsupported.iter().map(|(case, _)| case.as_str()).collect()
}

fn failed(report: &Report) -> Vec<&str> {
    report.failures.iter().map(|failure| failure.case.as_str()).collect()
}

#[test]
fn the_engines_pass_every_case_but_those_in_fp32_and_a_long_sum() {
    for faults in [Faults::M1, Faults::M5] {
        let report = run_suite(&AneSim::new(faults), &Tolerances::ANE_SIM);
        assert_eq!(failed(&report), LOST, "{faults:?}: {report}");
        assert_eq!(refused(&report), REFUSED, "{faults:?}");
    }
}

#[test]
fn without_faults_it_is_as_exact_as_the_reference() {
    let report = run_suite(&AneSim::new(Faults::EXACT), &Tolerances::REFERENCE);
    assert!(report.failures.is_empty(), "{report}");
}
