//! What the tests of the whole program share: a `lone` that sees nothing of the machine it runs on.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use assert_cmd::Command;
use assert_cmd::cargo::cargo_bin;
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

    /// The program itself.
    pub fn program(&self) -> PathBuf {
        cargo_bin("lone")
    }

    /// `lone`, in the directory, with no variables but those that keep it here.
    pub fn lone(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        self.confine(&mut command);
        command.args(args);
        command
    }

    /// A shell, confined likewise.
    pub fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        self.confine(&mut command);
        command.args(["-c", script]);
        command
    }

    /// `lone` likewise, to be spawned and talked to.
    pub fn process(&self) -> std::process::Command {
        let mut command = std::process::Command::new(self.program());
        command.current_dir(self.path()).env_clear().envs(self.variables());
        command
    }

    fn confine(&self, command: &mut Command) {
        command.current_dir(self.path()).env_clear().envs(self.variables());
        command.timeout(Duration::from_secs(120));
    }

    fn variables(&self) -> [(&'static str, PathBuf); 4] {
        let inside = |name| self.path().join(name);
        [
            ("HOME", inside("home")),
            ("LONE_CACHE", inside("cache")),
            // A meter comes from the test or not at all.
            ("LONE_POWERCAP", inside("powercap")),
            // The same everywhere: what Core ML does is tested where it is called.
            ("LONE_BACKEND", "cpu".into()),
        ]
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

impl Outcome {
    /// The same with `[N]` for every number that has decimals: sizes, times and rates.
    pub fn masked(&self) -> Outcome {
        Outcome { code: self.code, stdout: masked(&self.stdout), stderr: masked(&self.stderr) }
    }
}

/// Sizes and times are written with a point, rates sometimes without one.
fn masked(text: &str) -> String {
    let words: Vec<&str> = text.split_inclusive(' ').collect();
    let masked = |(i, word): (usize, &&str)| {
        let number = word.trim_end_matches(' ');
        let is_rate = words.get(i + 1).is_some_and(|unit| unit.trim_end().ends_with("/s"));
        let measured = (number.contains('.') || is_rate)
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit() || c == '.');
        if measured { word.replace(number, "[N]") } else { (*word).to_owned() }
    };
    words.iter().enumerate().map(masked).collect()
}

/// A checkpoint that travels with the sources, such as `tiny-lfm3` or `micro/lfm3-window8`.
pub fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

/// What is in a directory, sorted.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Changes the last byte of the file at `path`.
pub fn flip_last_byte(path: &Path) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let last = file.metadata().unwrap().len() - 1;
    let mut byte = [0];
    file.read_exact_at(&mut byte, last).unwrap();
    file.write_all_at(&[byte[0] ^ 1], last).unwrap();
}

/// Waits until something has come about.
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never happened");
        std::thread::sleep(Duration::from_millis(1));
    }
}
