//! How long `lone convert` takes beside a plain copy of the bundle, and how much memory it needs.
//!
//! Pairs of a conversion and a copy follow each other, so that a machine whose speed drifts slows both. Nothing is
//! synced on either side. Anonymous memory is asked of the system every few milliseconds (Linux only).

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

/// How often memory is looked at.
const INTERVAL: Duration = Duration::from_millis(5);

/// What is measured.
#[derive(Debug)]
pub struct Options {
    /// The program.
    pub lone: PathBuf,
    /// What it converts.
    pub checkpoint: PathBuf,
    /// A directory that does not exist yet, on the file system in question; it is gone afterwards.
    pub scratch: PathBuf,
    /// Conversions, and copies.
    pub pairs: usize,
}

/// What was measured.
#[derive(Debug)]
pub struct Report {
    pairs: Vec<Pair>,
}

#[derive(Debug)]
struct Pair {
    convert: Duration,
    copy: Duration,
    /// Largest RssAnon of the conversion that was seen, in KB.
    anonymous_kb: Option<u64>,
}

impl Report {
    /// Converts and copies.
    ///
    /// # Errors
    /// A program that cannot be run or fails, a scratch directory that exists.
    pub fn measure(options: &Options) -> anyhow::Result<Report> {
        ensure!(options.pairs > 0, "at least one pair is needed");
        let scratch = Scratch::new(&options.scratch)?;
        let pairs = (0..options.pairs).map(|_| scratch.pair(options));
        Ok(Report { pairs: pairs.collect::<Result<_, _>>()? })
    }
}

/// A directory that goes when it is dropped.
struct Scratch<'a>(&'a Path);

impl<'a> Scratch<'a> {
    fn new(path: &'a Path) -> anyhow::Result<Self> {
        fs::create_dir(path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Scratch(path))
    }

    fn pair(&self, options: &Options) -> anyhow::Result<Pair> {
        let (bundle, copy) = (self.0.join("bundle"), self.0.join("copy"));
        let mut command = Command::new(&options.lone);
        command.arg("convert").arg("--model").arg(&options.checkpoint).arg("--out").arg(&bundle);
        let (converted, anonymous_kb) = timed(&mut command)?;
        let mut command = Command::new("cp");
        let (copied, _) = timed(command.args(["-r", "--reflink=never"]).arg(&bundle).arg(&copy))?;
        fs::remove_dir_all(&bundle)?;
        fs::remove_dir_all(&copy)?;
        Ok(Pair { convert: converted, copy: copied, anonymous_kb })
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // Nothing is lost when a scratch directory stays.
        let _ = fs::remove_dir_all(self.0);
    }
}

/// Runs a command to its end: how long it took, and the most anonymous memory it was seen with, in KB.
fn timed(command: &mut Command) -> anyhow::Result<(Duration, Option<u64>)> {
    let program = command.get_program().to_owned();
    let start = Instant::now();
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut most = None;
    let status = loop {
        most = most.max(anonymous_kb(&child));
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(INTERVAL);
    };
    let taken = start.elapsed();
    ensure!(status.success(), "{} failed: {status}", program.display());
    Ok((taken, most))
}

fn anonymous_kb(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "convert s  cp s  ratio")?;
        for Pair { convert, copy, .. } in &self.pairs {
            let (convert, copy) = (convert.as_secs_f64(), copy.as_secs_f64());
            writeln!(f, "{convert:9.2} {copy:5.2} {:6.2}", convert / copy)?;
        }
        let ratios = self.pairs.iter().map(|pair| pair.convert.as_secs_f64() / pair.copy.as_secs_f64());
        writeln!(f, "median ratio {:.2}", median(ratios.collect()))?;
        match self.pairs.iter().filter_map(|pair| pair.anonymous_kb).max() {
            Some(most) => writeln!(f, "most anonymous memory {:.1} MB", most as f64 * 1024.0 / 1e6),
            None => Ok(()),
        }
    }
}

/// The middle value, or the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn a_program_that_fails_is_named() {
        let error = timed(Command::new("cp").arg("--reflink=never")).unwrap_err();
        assert!(error.to_string().starts_with("cp failed: "), "{error}");
    }

    #[test]
    fn the_scratch_directory_must_be_new_and_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("scratch");
        drop(Scratch::new(&path).unwrap());
        assert!(!path.exists());
        assert!(Scratch::new(dir.path()).is_err());
    }
}
