//! Development tasks, run as `cargo run -p xtask -- TASK`.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use lone_cpu::cores;
use xtask::ane_table;
use xtask::bench_peers;
use xtask::convert_time;
use xtask::fake_checkpoint::{self, DType, Model, Options, Preset};
use xtask::formula;
use xtask::palette_table;
use xtask::speculation;

#[derive(Parser)]
#[command(name = "xtask", about = "Development tasks")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Print what the precision rules buy on the simulated Neural Engine
    AneTable,
    /// Hold lone against llama.cpp, and transformers if installed, on the same checkpoint
    BenchPeers(BenchPeers),
    /// Hold `lone convert` against a plain copy of what it writes
    ConvertTime(ConvertTime),
    /// Write a checkpoint of real dimensions with random weights
    FakeCheckpoint(FakeCheckpoint),
    /// Print a Homebrew formula that builds a release from its sources
    Formula(Formula),
    /// Print what palettes cost: size, logits and right answers of checkpoints that have an exam
    PaletteTable(PaletteTable),
    /// Print what guessing tokens buys; needs 3 GB of disk for a while
    Speculation(Speculation),
}

#[derive(Args)]
struct Formula {
    /// Address of the release's source archive
    #[arg(long)]
    url: String,
    /// Hash of that archive
    #[arg(long, value_name = "HEX")]
    sha256: String,
}

#[derive(Args)]
struct PaletteTable {
    /// The checkpoints' directories
    #[arg(default_values = ["models/tiny-lfm2", "models/tiny-lfm3"])]
    models: Vec<PathBuf>,
    /// Take every so manieth question of the exams
    #[arg(long, value_name = "QUESTIONS", default_value = "1")]
    step: NonZeroUsize,
}

impl PaletteTable {
    fn print(self) -> anyhow::Result<()> {
        for model in self.models {
            writeln!(io::stdout(), "{}", palette_table::Report::compute(&model, self.step.get())?)?;
        }
        Ok(())
    }
}

#[derive(Args)]
struct Speculation {
    /// Where the trained models are
    #[arg(long, default_value = "models")]
    models: PathBuf,
    /// Rounds of which medians are taken
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

#[derive(Args)]
struct ConvertTime {
    /// What is converted
    checkpoint: PathBuf,
    /// A directory that does not exist yet, for bundle and copy; removed afterwards
    scratch: PathBuf,
    /// The program to measure
    #[arg(long, default_value = "target/release/lone")]
    lone: PathBuf,
    /// Conversions and copies, one after the other
    #[arg(long, default_value_t = 5)]
    pairs: usize,
}

impl ConvertTime {
    fn measure(self) -> anyhow::Result<convert_time::Report> {
        let ConvertTime { checkpoint, scratch, lone, pairs } = self;
        convert_time::Report::measure(&convert_time::Options { lone, checkpoint, scratch, pairs })
    }
}

#[derive(Args)]
struct BenchPeers {
    /// An LFM2 checkpoint
    checkpoint: PathBuf,
    /// A directory for bundles and GGUF files; what is there already is used
    scratch: PathBuf,
    /// Python with gguf, safetensors and llama-cpp-python; torch and transformers if these are to be measured
    #[arg(long)]
    python: PathBuf,
    /// The program to measure
    #[arg(long, default_value = "target/release/lone")]
    lone: PathBuf,
    /// Directory of the scripts that speak to them
    #[arg(long, default_value = "tools/peers")]
    scripts: PathBuf,
    /// Turns of each
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Threads of each
    #[arg(long, default_value_t = cores::physical_cores())]
    threads: NonZeroUsize,
    /// The instruction set that lone uses; the widest there is unless given
    #[arg(long)]
    isa: Option<String>,
    /// Copy lone's weights into huge pages
    #[arg(long)]
    huge_pages: bool,
    /// Measure lone with rounded weights and activations, too
    #[arg(long)]
    fast_int16: bool,
}

impl BenchPeers {
    fn measure(self) -> anyhow::Result<bench_peers::Report> {
        bench_peers::Report::measure(&bench_peers::Options {
            lone: self.lone,
            python: self.python,
            scripts: self.scripts,
            checkpoint: self.checkpoint,
            scratch: self.scratch,
            turns: self.turns,
            threads: self.threads.get(),
            isa: self.isa,
            huge_pages: self.huge_pages,
            fast_int16: self.fast_int16,
        })
    }
}

#[derive(Args)]
struct FakeCheckpoint {
    /// The model whose dimensions it has
    preset: Preset,
    /// Directory to write it to
    out: PathBuf,
    /// Number of safetensors files
    #[arg(long, default_value_t = 1)]
    shards: usize,
    /// Seed of the weights
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Element type of the weights
    #[arg(long, value_enum, default_value_t = DType::Bf16)]
    dtype: DType,
    /// Leave the tokenizer out
    #[arg(long)]
    no_tokenizer: bool,
    /// Layers, if not as many as the preset has
    #[arg(long)]
    layers: Option<usize>,
    /// Hidden size D
    #[arg(long)]
    hidden: Option<usize>,
    /// Feed-forward width F
    #[arg(long)]
    ffn: Option<usize>,
    /// Query heads H
    #[arg(long)]
    heads: Option<usize>,
    /// Key/value heads G
    #[arg(long)]
    kv_heads: Option<usize>,
    /// Head dimension d (for LFM2 it must be D / H)
    #[arg(long)]
    head_dim: Option<usize>,
    /// Vocabulary size V
    #[arg(long)]
    vocab: Option<usize>,
    /// Taps K of the short convolution
    #[arg(long)]
    taps: Option<usize>,
    /// Keys a sliding layer sees
    #[arg(long)]
    window: Option<usize>,
    /// Give the head weights of its own
    #[arg(long)]
    untied: bool,
    /// Give the convolution layers biases
    #[arg(long)]
    conv_bias: bool,
}

impl FakeCheckpoint {
    fn options(&self) -> Options {
        let preset = self.preset.model();
        let model = Model {
            layers: self.layers.unwrap_or(preset.layers),
            hidden: self.hidden.unwrap_or(preset.hidden),
            ffn: self.ffn.unwrap_or(preset.ffn),
            heads: self.heads.unwrap_or(preset.heads),
            kv_heads: self.kv_heads.unwrap_or(preset.kv_heads),
            head_dim: self.head_dim.unwrap_or(preset.head_dim),
            vocab: self.vocab.unwrap_or(preset.vocab),
            taps: self.taps.unwrap_or(preset.taps),
            window: self.window.unwrap_or(preset.window),
            tied: !self.untied,
            conv_bias: self.conv_bias,
            ..preset
        };
        let (dtype, shards, seed, tokenizer) = (self.dtype, self.shards, self.seed, !self.no_tokenizer);
        Options { model, dtype, shards, seed, tokenizer }
    }
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().task {
        Task::AneTable => Ok(write!(io::stdout(), "{}", ane_table::Report::compute()?)?),
        Task::BenchPeers(task) => Ok(write!(io::stdout(), "{}", task.measure()?)?),
        Task::ConvertTime(task) => Ok(write!(io::stdout(), "{}", task.measure()?)?),
        Task::FakeCheckpoint(task) => fake_checkpoint::write(&task.out, &task.options()),
        Task::Formula(Formula { url, sha256 }) => {
            Ok(write!(io::stdout(), "{}", formula::formula(&url, &sha256)?)?)
        }
        Task::PaletteTable(task) => task.print(),
        Task::Speculation(task) => {
            Ok(write!(io::stdout(), "{}", speculation::report(&task.models, task.rounds)?)?)
        }
    }
}
