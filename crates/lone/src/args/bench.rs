//! `lone bench`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use lone_cpu::Isa;

use super::{
    BackendChoice, CONVERSION_FLAGS, ConversionArgs, MODEL_HELP, MODEL_LONG_HELP, UnitsArgs, number,
};

const EXAMPLES: &str = "\
Examples:
  lone bench --model demo
  lone bench --bundle bundles/fp16 --bundle bundles/lut4 --threads 1,2 --spec
  lone bench --bundle b --prompt-tokens 32,1024 --gen 32 --html bench.html
  lone bench --bundle b --profile --json";

const MODEL: &str = "Model";
const MEASURE: &str = "What is measured";
const ENGINE: &str = "Engine";
const OUTPUT: &str = "Output";

/// Measure how fast models run here
///
/// Reads memory first, to say what part of that speed decoding reaches. Every bundle on every number of threads is one
/// arm; arms take turns, so that a machine that speeds up or slows down does so for all of them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group(ArgGroup::new("source").required(true).args(["bundle", "model"])))]
pub(crate) struct BenchArgs {
    /// A bundle that `lone convert` made; may be given several times
    #[arg(long, value_name = "DIR", conflicts_with_all = CONVERSION_FLAGS, help_heading = MODEL)]
    pub(crate) bundle: Vec<PathBuf>,

    #[arg(long, value_name = "MODEL", help = MODEL_HELP, help_heading = MODEL)]
    #[arg(long_help = format!("{MODEL_LONG_HELP}. It is converted on first use, into the cache"))]
    pub(crate) model: Option<String>,

    /// Lengths of prompts; decoding is measured after each
    #[arg(long, value_name = "TOKENS,…", value_delimiter = ',', default_value = "32,256,512", help_heading = MEASURE)]
    #[arg(value_parser = number::context, allow_negative_numbers = true)]
    pub(crate) prompt_tokens: Vec<usize>,

    /// Tokens to decode after each prompt
    #[arg(long = "gen", value_name = "TOKENS", default_value_t = 64, value_parser = number::context)]
    #[arg(allow_negative_numbers = true, help_heading = MEASURE)]
    pub(crate) decoded: usize,

    /// How often each arm has its turn
    #[arg(long, value_name = "TIMES", default_value_t = 5, value_parser = number::at_least_one, allow_negative_numbers = true)]
    #[arg(help_heading = MEASURE)]
    pub(crate) repeat: usize,

    /// Measure the pass that checks drafted tokens too, in a bundle made with `--spec-drafts`; a conversion on first
    /// use makes it
    #[arg(long, help_heading = MEASURE)]
    pub(crate) spec: bool,

    /// Show time and bytes by kind of step
    #[arg(long, help_heading = MEASURE)]
    pub(crate) profile: bool,

    /// What computes
    #[arg(long, value_enum, value_name = "BACKEND", default_value_t = BackendChoice::Auto, help_heading = ENGINE)]
    pub(crate) backend: BackendChoice,

    /// Numbers of threads of the CPU backend; as many as there are cores unless given
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',', value_parser = number::threads, allow_negative_numbers = true)]
    #[arg(help_heading = ENGINE)]
    pub(crate) threads: Vec<usize>,

    /// Copy weights into memory of huge pages: faster where the system has them, but not shared or given back
    #[arg(long, help_heading = ENGINE)]
    pub(crate) huge_pages: bool,

    /// Measure every bundle a second time, palettized weights and activations multiplied as 16-bit whole numbers
    #[arg(long, help_heading = ENGINE)]
    pub(crate) fast_int16: bool,

    /// The CPU backend's instruction set, to see what a CPU without the others would do; the widest unless given
    #[arg(long, value_name = "NAME", value_parser = isa, help_heading = ENGINE)]
    pub(crate) isa: Option<Isa>,

    #[command(flatten)]
    pub(crate) units: UnitsArgs,

    /// Print one JSON object
    #[arg(long, help_heading = OUTPUT)]
    pub(crate) json: bool,

    /// Print comma-separated values, a line per measurement
    #[arg(long, conflicts_with = "json", help_heading = OUTPUT)]
    pub(crate) csv: bool,

    /// Write a page with charts, too
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) conversion: ConversionArgs,
}

impl BenchArgs {
    /// Whether steps are to be timed one by one.
    pub(crate) fn shows_profile(&self) -> bool {
        self.profile || self.html.is_some()
    }
}

/// An instruction set that this CPU has.
fn isa(name: &str) -> Result<Isa, String> {
    Isa::named(name).ok_or_else(|| {
        let known: Vec<_> = Isa::available().map(Isa::name).collect();
        format!("this CPU has {}", known.join(", "))
    })
}
