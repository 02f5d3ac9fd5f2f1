//! Records by Hugging Face transformers, in a Python process of its own.

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use super::{Record, RecordError};

const SCRIPT: &str = include_str!("transformers.py");

/// The script's exit code where a module is missing.
const MISSING: i32 = 3;

/// Why transformers did not say anything.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TransformersError {
    #[error("cannot start {}: {source}", python.display())]
    Start { python: OsString, source: std::io::Error },
    #[error("{} has no {}", python.display(), modules.join(", no "))]
    Missing { python: OsString, modules: Vec<String> },
    #[error("transformers failed, {status}: {message}")]
    Failed { status: String, message: String },
    #[error("no room for what transformers says: {0}")]
    Scratch(std::io::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A Python interpreter that has transformers.
#[derive(Debug, Clone)]
pub struct Transformers {
    python: OsString,
}

impl Transformers {
    /// Run by the interpreter `python`, which is asked whether it has what is needed.
    ///
    /// # Errors
    /// [`TransformersError`], which says what is not installed.
    pub fn find(python: OsString) -> Result<Self, TransformersError> {
        let found = Transformers { python };
        let output = found.run(&[], "")?;
        if output.status.code() == Some(MISSING) {
            let modules = String::from_utf8_lossy(&output.stdout);
            let modules = modules.split_whitespace().map(str::to_owned).collect();
            return Err(TransformersError::Missing { python: found.python, modules });
        }
        succeeded(&output)?;
        Ok(found)
    }

    /// What transformers makes of `tokens` with the checkpoint of `layer_count` layers in `model`, in f32.
    ///
    /// # Errors
    /// [`TransformersError`], with what Python said last.
    pub fn record(
        &self,
        model: &Path,
        tokens: &[u32],
        layer_count: usize,
    ) -> Result<Record, TransformersError> {
        let scratch = tempfile::tempdir().map_err(TransformersError::Scratch)?;
        let out = scratch.path().join("record.safetensors");
        let request = json!({ "model": model, "tokens": tokens, "out": out }).to_string();
        succeeded(&self.run(&["record"], &request)?)?;
        Ok(Record::open(&out, layer_count)?)
    }

    fn run(&self, arguments: &[&str], request: &str) -> Result<Output, TransformersError> {
        run(Command::new(&self.python).args(["-c", SCRIPT]).args(arguments), request)
            .map_err(|source| TransformersError::Start { python: self.python.clone(), source })
    }
}

fn run(command: &mut Command, request: &str) -> std::io::Result<Output> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A script that ends before it reads closes the pipe; its exit code says why.
    stdin.write_all(request.as_bytes()).ok();
    drop(stdin);
    child.wait_with_output()
}

fn succeeded(output: &Output) -> Result<(), TransformersError> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // Of a traceback, the last line is the error.
    let message = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it did not say why");
    Err(TransformersError::Failed { status: output.status.to_string(), message: message.to_owned() })
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// What comes of an interpreter that is this shell script.
    fn outcome(script: &str) -> TransformersError {
        let dir = tempfile::tempdir().unwrap();
        let python = dir.path().join("python");
        std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
        let found = Transformers::find(python.into());
        found.and_then(|found| found.record(Path::new("model"), &[1, 2], 2)).unwrap_err()
    }

    #[test]
    fn what_is_not_installed_is_named() {
        let error = outcome("echo torch transformers; exit 3");
        assert!(error.to_string().ends_with("/python has no torch, no transformers"), "{error}");
    }

    #[test]
    fn a_failure_is_told_in_the_last_words_of_the_traceback() {
        let error = outcome("printf 'Traceback:\n  line\nValueError: no lfm9\n\n' >&2; [ $# = 2 ]");
        assert_eq!(error.to_string(), "transformers failed, exit status: 1: ValueError: no lfm9");
    }

    #[test]
    fn an_interpreter_that_writes_nothing_is_found_out() {
        assert!(matches!(outcome("cat >/dev/null"), TransformersError::Record(RecordError::Read { .. })));
    }

    #[test]
    fn an_interpreter_that_is_not_there_is_named() {
        let error = Transformers::find("/nowhere/python".into()).unwrap_err();
        assert!(error.to_string().starts_with("cannot start /nowhere/python"), "{error}");
    }
}
