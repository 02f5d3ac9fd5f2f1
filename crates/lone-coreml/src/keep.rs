//! Values inside a program that are to be seen: Core ML shows only outputs, so they are made outputs of a copy.

use std::fs;
use std::path::{Path, PathBuf};

use lone_mil::package::{Package, PackageWriter};
use lone_mil::{BackendError, Function, Keep};

use crate::CoremlError;

/// Makes the values of `keep` outputs of their functions, after the declared ones.
///
/// # Errors
/// [`BackendError::NoFunction`] and [`BackendError::NoValue`] for what is not there; [`BackendError::Unsupported`] for
/// an input, which Core ML does not return.
pub(crate) fn make_outputs(functions: &mut [Function], keep: &[Keep]) -> Result<(), BackendError> {
    for kept in keep {
        let index = functions.iter().position(|function| function.name == kept.function);
        let index = index.ok_or_else(|| BackendError::NoFunction {
            function: kept.function.clone(),
            available: functions.iter().map(|function| function.name.clone()).collect(),
        })?;
        let function = &mut functions[index];
        let value = function.value_named(&kept.value).ok_or_else(|| BackendError::NoValue(kept.clone()))?;
        if function.inputs.contains(&value) {
            let place = format!("function `{}`, `{}`", kept.function, kept.value);
            return Err(BackendError::Unsupported { place, what: "an input among the outputs".into() });
        }
        if !function.outputs.contains(&value) {
            function.outputs.push(value);
        }
    }
    Ok(())
}

/// Writes a copy of `package`, whose program is `changed`, in `dir`. The weights are shared where the file system allows it.
///
/// # Errors
/// If it cannot be written, or a value is of a type that Core ML cannot return.
pub(crate) fn write_copy(changed: &Package, dir: &Path) -> Result<PathBuf, CoremlError> {
    let path = dir.join("kept.mlpackage");
    let writer = PackageWriter::create(&path)?;
    let weights = changed.blobs.path();
    if weights.exists() {
        let to = writer.weights_path();
        let linked = fs::hard_link(weights, &to).or_else(|_| fs::copy(weights, &to).map(drop));
        linked.map_err(|source| CoremlError::Io { path: to, source })?;
    }
    writer.finish(&changed.program, &changed.metadata)?;
    Ok(path)
}
