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
    /// Whether lone computes with rounded weights and activations, too.
    pub fast_int16: bool,
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

/// One turn of lone.
type Turn = (Speeds, Limits);

/// All turns of a pair.
#[derive(Debug)]
struct Contest {
    pair: Pair,
    lone: Vec<Turn>,
    /// As fast as it can, if that is something else.
    fast: Vec<Turn>,
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
        let mut contests: Vec<_> = pairs.map(Contest::of).collect();
        for contest in &contests {
            let (precision, peer) = contest.pair;
            options.convert(precision)?;
            if let Peer::LlamaCpp(kind) = peer {
                options.write_gguf(kind)?;
            }
        }
        for _ in 0..options.turns {
            for contest in &mut contests {
                let (lone, fast) = options.run_lone(contest.pair.0)?;
                contest.lone.push(lone);
                contest.fast.extend(fast);
                contest.peer.push(options.run_peer(contest.pair.1)?);
            }
        }
        Ok(Report { contests })
    }
}

impl Report {
    /// The rows of a table, each with the contest it belongs to.
    fn rows(&self) -> impl Iterator<Item = (&Contest, (String, &[Turn]))> {
        self.contests.iter().flat_map(|contest| contest.rows().map(move |row| (contest, row)))
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

    /// One turn, and one of the fast way.
    fn run_lone(&self, precision: &str) -> anyhow::Result<(Turn, Option<Turn>)> {
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
        // Only palettes are rounded.
        let fast = self.fast_int16 && precision != "fp16";
        if fast {
            command.arg("--fast-int16");
        }
        let report = output(&mut command)?;
        Ok((of_lone(&report, 0)?, fast.then(|| of_lone(&report, 1)).transpose()?))
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

/// What `lone bench --json` says of a row.
fn of_lone(report: &Value, row: usize) -> anyhow::Result<Turn> {
    let of_row = |what: &str| number(report, &format!("/rows/{row}/{what}"));
    let speeds = Speeds {
        prefill: of_row("prefill/tokens_per_second")?,
        decode: of_row("decode/tokens_per_second")?,
        verify: of_row("verify/seconds/median")?,
    };
    let limits = Limits {
        bytes_per_second: number(report, "/machine/limits/0/bytes_per_second/median")?,
        flops_per_second: number(report, "/machine/limits/0/flops_per_second/median")?,
        bandwidth_fraction: of_row("decode/bandwidth_fraction")?,
        arithmetic_fractions: [of_row("prefill/arithmetic_fraction")?, of_row("verify/arithmetic_fraction")?],
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
    fn of(pair: Pair) -> Self {
        Contest { pair, lone: Vec::new(), fast: Vec::new(), peer: Vec::new() }
    }

    /// What lone is called in a row of a table, and its turns: one row or two.
    fn rows(&self) -> impl Iterator<Item = (String, &[Turn])> {
        let precision = self.pair.0;
        let rows = [(precision.to_owned(), &*self.lone), (format!("{precision}, fast-int16"), &*self.fast)];
        rows.into_iter().filter(|(_, turns)| !turns.is_empty())
    }

    fn peer(&self, of: impl Fn(&Speeds) -> f64) -> f64 {
        median(self.peer.iter().map(of).collect())
    }

    /// The median of the ratios of turns that followed each other.
    fn ratio(&self, turns: &[Turn], of: impl Fn(&Speeds) -> f64) -> f64 {
        let ratios = turns.iter().zip(&self.peer).map(|((lone, _), peer)| of(lone) / of(peer));
        median(ratios.collect())
    }
}

/// The median of what `of` finds in each turn.
fn middle(turns: &[Turn], of: impl Fn(&Turn) -> f64) -> f64 {
    median(turns.iter().map(of).collect())
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
        for (contest, (name, turns)) in self.rows() {
            let peer = contest.pair.1;
            let [prefill, decode, verify]: [fn(&Speeds) -> f64; 3] =
                [|speeds| speeds.prefill, |speeds| speeds.decode, |speeds| 1e3 * speeds.verify];
            write!(f, "| {name} | {peer} |")?;
            for (speed, digits, ratio) in [
                (prefill, 0, contest.ratio(turns, prefill)),
                (decode, 1, contest.ratio(turns, decode)),
                (verify, 0, contest.ratio(turns, verify).recip()),
            ] {
                let (lone, other) = (middle(turns, |turn| speed(&turn.0)), contest.peer(speed));
                write!(f, " {lone:.digits$} : {other:.digits$} | {ratio:.2} |")?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "\n| lone | memory GB/s | of it, decode | GFLOP/s | of it, prefill | of it, {CHECKED} at once |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|")?;
        for (_, (name, turns)) in self.rows() {
            let of = |limit: fn(&Limits) -> f64| middle(turns, |turn| limit(&turn.1));
            writeln!(
                f,
                "| {name} | {:.1} | {:.0} % | {:.0} | {:.0} % | {:.0} % |",
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
        let lone = of_lone(&report(), 0).unwrap();
        let peer = Speeds { prefill: 100.0, decode: 50.0, verify: 0.25 };
        let contest = Contest { lone: vec![lone], peer: vec![peer], ..Contest::of(PAIRS[0]) };
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
        let error = of_lone(&report, 0).unwrap_err();
        assert_eq!(error.to_string(), "no number at /rows/0/decode/bandwidth_fraction");
    }

    #[test]
    fn a_program_that_fails_is_named_with_what_it_said() {
        let error = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "sh failed: exit status: 3: why\n");
    }
}
