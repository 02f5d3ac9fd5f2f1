//! Records by Hugging Face transformers, in a Python process of its own.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;

use super::{Record, RecordError};
use crate::Watch;

const SCRIPT: &str = include_str!("transformers.py");

/// The script's exit code where a module is missing.
const MISSING: i32 = 3;

/// How often it is asked whether the script is done, or not wanted any more.
const PATIENCE: Duration = Duration::from_millis(20);

/// Why transformers did not say anything.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum TransformersError {
    #[error("cannot start {}: {source}", python.display())]
    Start { python: OsString, source: io::Error },
    #[error("{} has no {}", python.display(), modules.join(", no "))]
    Missing { python: OsString, modules: Vec<String> },
    #[error("transformers failed, {status}: {message}")]
    Failed { status: String, message: String },
    #[error("no room for what transformers says: {0}")]
    Scratch(io::Error),
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
        let output = found.run(&[], String::new(), &())?.expect("nobody cancels it");
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
    /// [`TransformersError`], with what Python said last; [`RecordError::Cancelled`] in it.
    pub fn record(
        &self,
        model: &Path,
        tokens: &[u32],
        layer_count: usize,
        watch: &dyn Watch,
    ) -> Result<Record, TransformersError> {
        let scratch = tempfile::tempdir().map_err(TransformersError::Scratch)?;
        let out = scratch.path().join("record.safetensors");
        let request = json!({ "model": model, "tokens": tokens, "out": out }).to_string();
        let output = self.run(&["record"], request, watch)?;
        // Ctrl-C goes to both: the script may have ended by it first.
        let output = output.filter(|_| !watch.is_cancelled()).ok_or(RecordError::Cancelled)?;
        succeeded(&output)?;
        Ok(Record::open(&out, layer_count)?)
    }

    /// `None` where it was cancelled.
    fn run(
        &self,
        arguments: &[&str],
        request: String,
        watch: &dyn Watch,
    ) -> Result<Option<Output>, TransformersError> {
        run(Command::new(&self.python).args(["-c", SCRIPT]).args(arguments), request, watch)
            .map_err(|source| TransformersError::Start { python: self.python.clone(), source })
    }
}

fn run(command: &mut Command, request: String, watch: &dyn Watch) -> io::Result<Option<Output>> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    // A script that ends before it reads closes the pipe; its exit code says why.
    thread::spawn(move || stdin.write_all(request.as_bytes()).ok());
    let said = read(child.stdout.take().expect("stdout is piped"));
    let complained = read(child.stderr.take().expect("stderr is piped"));
    let Some(status) = wait(&mut child, watch)? else { return Ok(None) };
    let [stdout, stderr] = [said, complained].map(|reader| reader.join().expect("reading does not panic"));
    Ok(Some(Output { status, stdout, stderr }))
}

/// Reads all there is, and what cannot be read as nothing.
fn read(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).ok();
        bytes
    })
}

/// Waits for the end of `child`, or makes it end where it is not wanted any more.
fn wait(child: &mut Child, watch: &dyn Watch) -> io::Result<Option<ExitStatus>> {
    while !watch.is_cancelled() {
        let status = child.try_wait()?;
        if status.is_some() {
            return Ok(status);
        }
        thread::sleep(PATIENCE);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
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

    /// Has no patience, once the script says so.
    struct Impatient(std::path::PathBuf);

    impl Watch for Impatient {
        fn is_cancelled(&self) -> bool {
            self.0.exists()
        }
    }

    /// What comes of an interpreter that is this shell script.
    fn outcome(script: &str) -> TransformersError {
        let dir = tempfile::tempdir().unwrap();
        let python = dir.path().join("python");
        std::fs::write(&python, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
        let found = Transformers::find(python.into());
        let watch = Impatient(dir.path().join("enough"));
        found.and_then(|found| found.record(Path::new("model"), &[1, 2], 2, &watch)).unwrap_err()
    }

    #[test]
    fn an_interpreter_that_is_not_wanted_any_more_is_stopped() {
        let error = outcome("[ $# = 2 ] && exit; touch \"$(dirname \"$0\")/enough\"; exec sleep 600");
        assert!(matches!(error, TransformersError::Record(RecordError::Cancelled)), "{error}");
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
