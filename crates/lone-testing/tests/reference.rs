//! The suite on the reference interpreter, which must pass all of it.

use lone_mil::{Interpreter, Reference};
use lone_testing::{Tolerances, run_suite};

#[test]
fn the_reference_interpreter_passes_every_case() {
    let report = run_suite(&Interpreter::<Reference>::new(), &Tolerances::REFERENCE);
    assert!(report.failures.is_empty() && report.unsupported.is_empty(), "{report}{:?}", report.unsupported);
}
