//! Running the cases on a backend and telling what went wrong.

use std::fmt;
use std::fs;
use std::path::Path;

use lone_mil::package::{Metadata, PackageWriter};
use lone_mil::{Backend, BackendError, LoadOptions, Program};

use crate::author::FUNCTION;
use crate::{Kind, OpCase, Tensor, Tolerances, op_cases};

/// What a backend made of the suite.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Cases whose results were near enough.
    pub passed: Vec<String>,
    /// Cases that the backend refused at load, with what it said.
    pub unsupported: Vec<(String, String)>,
    /// Cases that failed.
    pub failures: Vec<Failure>,
}

/// A case that failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Its name.
    pub case: String,
    /// The error, or the first element that is too far off.
    pub what: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { passed, unsupported, failures } = self;
        writeln!(f, "{} passed, {} unsupported, {} failed", passed.len(), unsupported.len(), failures.len())?;
        failures.iter().try_for_each(|failure| writeln!(f, "  {}: {}", failure.case, failure.what))
    }
}

/// Runs every case of [`op_cases`] on `backend`.
pub fn run_suite(backend: &dyn Backend, tolerances: &Tolerances) -> Report {
    let mut report = Report::default();
    for case in op_cases() {
        let name = case.name.clone();
        match run_case(backend, &case).map(|found| compare(&case, &found, tolerances)) {
            Ok(Ok(())) => report.passed.push(name),
            Err(BackendError::Unsupported { place, what }) => {
                report.unsupported.push((name, format!("{place}: {what}")));
            }
            Ok(Err(what)) => report.failures.push(Failure { case: name, what }),
            Err(error) => report.failures.push(Failure { case: name, what: error.to_string() }),
        }
    }
    report
}

/// The outputs of one case, whose package is written to a temporary directory and loaded from there.
///
/// # Errors
/// Those of [`Backend::load`] and [`lone_mil::Model::run`].
///
/// # Panics
/// If the temporary directory cannot be written, or the package is one that lone-mil itself refuses.
pub fn run_case(backend: &dyn Backend, case: &OpCase) -> Result<Vec<Tensor>, BackendError> {
    let directory = tempfile::tempdir().expect("temporary directories can be made");
    let path = directory.path().join("case.mlpackage");
    write_package(case, &path);
    let mut model = backend.load(&path, &LoadOptions::default())?;
    let mut outputs: Vec<Tensor> =
        case.expected.iter().map(|expected| Tensor::zeros(&expected.ty())).collect();
    let inputs: Vec<_> = case.inputs.iter().map(Tensor::as_ref).collect();
    let mut buffers: Vec<_> = outputs.iter_mut().map(Tensor::as_mut).collect();
    model.run(FUNCTION, &inputs, &mut buffers)?;
    Ok(outputs)
}

fn write_package(case: &OpCase, path: &Path) {
    let writer = PackageWriter::create(path).expect("a new directory can be made");
    fs::write(writer.weights_path(), case.weights()).expect("weights can be written");
    let program = Program { functions: vec![case.function.clone()], default_function: FUNCTION.into() };
    writer.finish(&program, &Metadata::default()).unwrap_or_else(|error| panic!("{}: {error}", case.name));
}

/// Whether all outputs are near enough; else the first element that is not.
fn compare(case: &OpCase, found: &[Tensor], tolerances: &Tolerances) -> Result<(), String> {
    for (output, (found, expected)) in found.iter().zip(&case.expected).enumerate() {
        let ty = expected.ty();
        let tolerance = tolerances.of(case.kind, ty.dtype);
        for (i, (found, expected)) in found.values().into_iter().zip(expected.values()).enumerate() {
            if !tolerance.accepts(found, expected) {
                let Kind::Exact = case.kind else {
                    let allowed = tolerance.absolute + tolerance.relative * expected.abs();
                    return Err(format!(
                        "output {output} {ty}, element {i}: expected {expected}, found {found}, off by {:e}, {allowed:e} allowed",
                        (found - expected).abs()
                    ));
                };
                return Err(format!("output {output} {ty}, element {i}: expected {expected}, found {found}"));
            }
        }
    }
    Ok(())
}
