//! lone, llama.cpp and transformers on the same checkpoint: prefill, decode and the pass that checks drafted tokens.
//!
//! All are programs of their own, started anew each turn, and take turns, so that a machine whose speed drifts slows
//! all. What a turn of lone measures of memory and arithmetic is measured in the same second.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::convert_time::median;

/// Tokens of a prompt, tokens decoded after it, and tokens of a pass that checks drafts.
const PROMPT: usize = 512;
const DECODED: usize = 32;
const CHECKED: usize = 17;

/// What is compared: lone's precision, and a peer's type of about as many bits.
const PAIRS: [Pair; 5] = [
    ("fp16", Peer::LlamaCpp("f16")),
    ("lut8", Peer::LlamaCpp("q8_0")),
    ("lut6", Peer::LlamaCpp("q6_k")),
    ("lut4", Peer::LlamaCpp("q4_0")),
    ("fp16", Peer::Transformers),
];

type Pair = (&'static str, Peer);

/// What lone is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Peer {
    /// With weights of this type.
    LlamaCpp(&'static str),
    /// With weights in bf16.
    Transformers,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::LlamaCpp(kind) => write!(f, "llama.cpp {}", kind.to_uppercase()),
            Peer::Transformers => f.write_str("transformers BF16"),
        }
    }
}

/// What is measured.
#[derive(Debug)]
pub struct Options {
    /// `lone`.
    pub lone: PathBuf,
    /// Python that has gguf, safetensors and llama-cpp-python, and maybe torch and transformers.
    pub python: PathBuf,
    /// The directory of the scripts that speak to the peers.
    pub scripts: PathBuf,
    /// An LFM2 checkpoint; no other architecture is llama.cpp's.
    pub checkpoint: PathBuf,
    /// A directory for bundles and GGUF files; what is there already is used.
    pub scratch: PathBuf,
    /// Turns of each.
    pub turns: usize,
    /// Threads of each.
    pub threads: usize,
    /// The instruction set that lone uses, if not the widest.
    pub isa: Option<String>,
    /// Whether lone's weights are copied into huge pages.
    pub huge_pages: bool,
}

/// What one turn measured.
#[derive(Debug, Clone, Copy)]
struct Speeds {
    /// Tokens a second.
    prefill: f64,
    /// Tokens a second.
    decode: f64,
    /// Seconds.
    verify: f64,
}

/// What one turn of lone measured besides.
#[derive(Debug, Clone, Copy)]
struct Limits {
    bytes_per_second: f64,
    flops_per_second: f64,
    /// Of the first, by decode.
    bandwidth_fraction: f64,
    /// Of the second, by prefill and by the verify pass.
    arithmetic_fractions: [f64; 2],
}

/// All turns of a pair.
#[derive(Debug)]
struct Contest {
    pair: Pair,
    lone: Vec<(Speeds, Limits)>,
    peer: Vec<Speeds>,
}

/// All that was measured.
#[derive(Debug)]
pub struct Report {
    contests: Vec<Contest>,
}

impl Report {
    /// Writes what is not there yet, and measures.
    ///
    /// # Errors
    /// A program that cannot be run, fails, or prints something else.
    pub fn measure(options: &Options) -> anyhow::Result<Report> {
        ensure!(options.turns > 0, "at least one turn is needed");
        fs::create_dir_all(&options.scratch)?;
        let has_transformers = options.has_transformers()?;
        let pairs = PAIRS.into_iter().filter(|pair| has_transformers || pair.1 != Peer::Transformers);
        let mut contests: Vec<_> =
            pairs.map(|pair| Contest { pair, lone: Vec::new(), peer: Vec::new() }).collect();
        for contest in &contests {
            let (precision, peer) = contest.pair;
            options.convert(precision)?;
            if let Peer::LlamaCpp(kind) = peer {
                options.write_gguf(kind)?;
            }
        }
        for _ in 0..options.turns {
            for contest in &mut contests {
                contest.lone.push(options.run_lone(contest.pair.0)?);
                contest.peer.push(options.run_peer(contest.pair.1)?);
            }
        }
        Ok(Report { contests })
    }
}

impl Options {
    fn bundle(&self, precision: &str) -> PathBuf {
        self.scratch.join(precision)
    }

    fn gguf(&self, kind: &str) -> PathBuf {
        self.scratch.join(format!("model.{kind}.gguf"))
    }

    fn convert(&self, precision: &str) -> anyhow::Result<()> {
        let out = self.bundle(precision);
        if out.exists() {
            return Ok(());
        }
        let mut command = Command::new(&self.lone);
        command.arg("convert").arg("--model").arg(&self.checkpoint).arg("--out").arg(&out);
        command.args(["--precision", precision, "--prefill", "16,256", "--spec-drafts"]);
        run(command.arg((CHECKED - 1).to_string())).map(drop)
    }

    fn write_gguf(&self, kind: &str) -> anyhow::Result<()> {
        let out = self.gguf(kind);
        if out.exists() {
            return Ok(());
        }
        let mut command = self.script("llama_cpp_peer.py");
        run(command.arg("write").arg(&self.checkpoint).arg(out).arg(kind)).map(drop)
    }

    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(self.scripts.join(name));
        command
    }

    fn has_transformers(&self) -> anyhow::Result<bool> {
        let mut command = Command::new(&self.python);
        command.args(["-c", "import torch, transformers"]).stderr(Stdio::null());
        let status = command.status().with_context(|| format!("cannot run {}", self.python.display()))?;
        Ok(status.success())
    }

    fn run_lone(&self, precision: &str) -> anyhow::Result<(Speeds, Limits)> {
        let numbers = [PROMPT, DECODED, self.threads].map(|number| number.to_string());
        let mut command = Command::new(&self.lone);
        command.arg("bench").arg("--bundle").arg(self.bundle(precision));
        command.args(["--prompt-tokens", &numbers[0], "--gen", &numbers[1], "--threads", &numbers[2]]);
        command.args(["--repeat", "1", "--spec", "--json", "--quiet"]);
        if let Some(isa) = &self.isa {
            command.args(["--isa", isa]);
        }
        if self.huge_pages {
            command.arg("--huge-pages");
        }
        of_lone(&output(&mut command)?)
    }

    fn run_peer(&self, peer: Peer) -> anyhow::Result<Speeds> {
        let numbers = [self.threads, PROMPT, DECODED, CHECKED].map(|number| number.to_string());
        let report = match peer {
            Peer::LlamaCpp(kind) => {
                let mut command = self.script("llama_cpp_peer.py");
                output(command.arg("measure").arg(self.gguf(kind)).args(numbers))?
            }
            Peer::Transformers => {
                output(self.script("transformers_peer.py").arg(&self.checkpoint).args(numbers))?
            }
        };
        let [prefill, decode, verify] = ["/prefill", "/decode", "/verify"].map(|at| number(&report, at));
        Ok(Speeds { prefill: prefill?, decode: decode?, verify: verify? })
    }
}

/// What `lone bench --json` says of its one row.
fn of_lone(report: &Value) -> anyhow::Result<(Speeds, Limits)> {
    let speeds = Speeds {
        prefill: number(report, "/rows/0/prefill/tokens_per_second")?,
        decode: number(report, "/rows/0/decode/tokens_per_second")?,
        verify: number(report, "/rows/0/verify/seconds/median")?,
    };
    let limits = Limits {
        bytes_per_second: number(report, "/machine/limits/0/bytes_per_second/median")?,
        flops_per_second: number(report, "/machine/limits/0/flops_per_second/median")?,
        bandwidth_fraction: number(report, "/rows/0/decode/bandwidth_fraction")?,
        arithmetic_fractions: [
            number(report, "/rows/0/prefill/arithmetic_fraction")?,
            number(report, "/rows/0/verify/arithmetic_fraction")?,
        ],
    };
    Ok((speeds, limits))
}

fn number(report: &Value, pointer: &str) -> anyhow::Result<f64> {
    report.pointer(pointer).and_then(Value::as_f64).with_context(|| format!("no number at {pointer}"))
}

/// Runs a command to its end; the JSON it printed.
fn output(command: &mut Command) -> anyhow::Result<Value> {
    let printed = run(command)?;
    serde_json::from_slice(&printed)
        .with_context(|| format!("{} printed no JSON", command.get_program().display()))
}

/// Runs a command to its end; what it printed.
fn run(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let program = Path::new(command.get_program()).to_owned();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {}", program.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {}: {errors}", program.display(), output.status);
    Ok(output.stdout)
}

impl Contest {
    fn lone(&self, of: impl Fn(&(Speeds, Limits)) -> f64) -> f64 {
        median(self.lone.iter().map(of).collect())
    }

    fn peer(&self, of: impl Fn(&Speeds) -> f64) -> f64 {
        median(self.peer.iter().map(of).collect())
    }

    /// The median of the ratios of turns that followed each other.
    fn ratio(&self, of: impl Fn(&Speeds) -> f64) -> f64 {
        let ratios = self.lone.iter().zip(&self.peer).map(|((lone, _), peer)| of(lone) / of(peer));
        median(ratios.collect())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let turns = self.contests.first().map_or(0, |contest| contest.lone.len());
        writeln!(
            f,
            "Medians of {turns} turns; ratios are medians of the turns' own, above 1 where lone is faster.\n"
        )?;
        writeln!(
            f,
            "| lone | peer | prefill {PROMPT} tok/s | | decode tok/s | | {CHECKED} tokens at once, ms | |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        for contest in &self.contests {
            let (precision, peer) = contest.pair;
            let [prefill, decode, verify]: [fn(&Speeds) -> f64; 3] =
                [|speeds| speeds.prefill, |speeds| speeds.decode, |speeds| 1e3 * speeds.verify];
            write!(f, "| {precision} | {peer} |")?;
            for (speed, digits, ratio) in [
                (prefill, 0, contest.ratio(prefill)),
                (decode, 1, contest.ratio(decode)),
                (verify, 0, contest.ratio(verify).recip()),
            ] {
                let (lone, other) = (contest.lone(|turn| speed(&turn.0)), contest.peer(speed));
                write!(f, " {lone:.digits$} : {other:.digits$} | {ratio:.2} |")?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "\n| lone | memory GB/s | of it, decode | GFLOP/s | of it, prefill | of it, {CHECKED} at once |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for contest in &self.contests {
            let of = |limit: fn(&Limits) -> f64| contest.lone(|turn| limit(&turn.1));
            writeln!(
                f,
                "| {} | {:.1} | {:.0} % | {:.0} | {:.0} % | {:.0} % |",
                contest.pair.0,
                of(|limits| limits.bytes_per_second / 1e9),
                of(|limits| 100.0 * limits.bandwidth_fraction),
                of(|limits| limits.flops_per_second / 1e9),
                of(|limits| 100.0 * limits.arithmetic_fractions[0]),
                of(|limits| 100.0 * limits.arithmetic_fractions[1]),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report() -> Value {
        json!({
            "machine": {"limits": [{"bytes_per_second": {"median": 2e10}, "flops_per_second": {"median": 1.5e11}}]},
            "rows": [{
                "prefill": {"tokens_per_second": 200.0, "arithmetic_fraction": 0.75},
                "decode": {"tokens_per_second": 25.0, "bandwidth_fraction": 0.9},
                "verify": {"seconds": {"median": 0.125}, "arithmetic_fraction": 0.5},
            }],
        })
    }

    #[test]
    fn ratios_are_above_one_where_lone_is_faster() {
        let lone = of_lone(&report()).unwrap();
        let peer = Speeds { prefill: 100.0, decode: 50.0, verify: 0.25 };
        let contest = Contest { pair: PAIRS[0], lone: vec![lone], peer: vec![peer] };
        let lines = Report { contests: vec![contest] }.to_string();
        assert!(
            lines.contains(
                "| fp16 | llama.cpp F16 | 200 : 100 | 2.00 | 25.0 : 50.0 | 0.50 | 125 : 250 | 2.00 |\n"
            ),
            "{lines}"
        );
        assert!(lines.contains("| fp16 | 20.0 | 90 % | 150 | 75 % | 50 % |\n"), "{lines}");
    }

    #[test]
    fn a_number_that_is_missing_is_named() {
        let mut report = report();
        report["rows"][0]["decode"]["bandwidth_fraction"] = Value::Null;
        let error = of_lone(&report).unwrap_err();
        assert_eq!(error.to_string(), "no number at /rows/0/decode/bandwidth_fraction");
    }

    #[test]
    fn a_program_that_fails_is_named_with_what_it_said() {
        let error = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "sh failed: exit status: 3: why\n");
    }
}
