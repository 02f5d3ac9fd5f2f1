//! What the tests of the whole program share: a `lone` that sees nothing of the machine it runs on.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

/// A directory to work in, with a cache and a home of its own.
pub struct Machine {
    dir: TempDir,
}

/// How a run ended.
pub struct Outcome {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Machine {
    pub fn new() -> Self {
        Machine { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// `lone`, in the directory, with no variables but those that keep it here.
    pub fn lone(&self, args: &[&str]) -> Command {
        let mut command = Command::cargo_bin("lone").unwrap();
        command.current_dir(self.path()).args(args).env_clear();
        command.env("HOME", self.path().join("home")).env("LONE_CACHE", self.path().join("cache"));
        command.timeout(std::time::Duration::from_secs(120));
        command
    }

    /// Runs `lone` and takes down what it said. Paths in here are shown as `[DIR]`.
    pub fn run(&self, args: &[&str]) -> Outcome {
        self.outcome(&mut self.lone(args))
    }

    /// As [`Machine::run`], for a command that was changed first.
    pub fn outcome(&self, command: &mut Command) -> Outcome {
        let output = command.output().unwrap();
        let shown = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().replace(self.path().to_str().unwrap(), "[DIR]")
        };
        Outcome {
            code: output.status.code().unwrap(),
            stdout: shown(output.stdout),
            stderr: shown(output.stderr),
        }
    }
}

/// A checkpoint that travels with the sources, such as `tiny-lfm3` or `micro/lfm3-window8`.
pub fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}
