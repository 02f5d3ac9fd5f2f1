//! Flags of every command that runs a model: who computes, and how.

use clap::{Args, ValueEnum};

use super::number;

const ENGINE: &str = "Engine";

/// What computes.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// What computes
    #[arg(long, value_enum, value_name = "BACKEND", default_value_t = BackendChoice::Auto, help_heading = ENGINE)]
    pub(crate) backend: BackendChoice,

    /// Threads of the CPU backend; as many as there are cores unless given
    #[arg(long, value_name = "COUNT", value_parser = number::threads, allow_negative_numbers = true, help_heading = ENGINE)]
    pub(crate) threads: Option<usize>,

    /// Copy the CPU backend's weights into memory of huge pages: faster where the system has them, but not shared
    #[arg(long, help_heading = ENGINE)]
    pub(crate) huge_pages: bool,

    /// Let the CPU backend multiply palettized weights and activations as 16-bit whole numbers: faster, nearly exact
    #[arg(long, help_heading = ENGINE)]
    pub(crate) fast_int16: bool,

    /// The Neural Engine that `--backend ane-sim` simulates
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t = AnePreset::M1, help_heading = ENGINE)]
    pub(crate) ane_preset: AnePreset,

    #[command(flatten)]
    pub(crate) units: UnitsArgs,
}

/// Which processors compute.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct UnitsArgs {
    /// The processors that Core ML may use
    #[arg(long, value_enum, value_name = "UNITS", default_value_t = UnitsChoice::CpuAndNe, help_heading = ENGINE)]
    pub(crate) compute_units: UnitsChoice,

    /// Compute on the CPU alone: with Core ML's own code on Core ML, with the CPU backend elsewhere
    #[arg(long, conflicts_with = "compute_units", help_heading = ENGINE)]
    pub(crate) cpu_only: bool,
}

/// The choices of `--backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BackendChoice {
    /// What LONE_BACKEND says, else Core ML on macOS and the CPU engine elsewhere
    Auto,
    /// The optimising CPU engine
    Cpu,
    /// A model of the Neural Engine's arithmetic; slow
    AneSim,
    /// The interpreter that defines what each operation means; slow
    Reference,
    /// Core ML, on macOS
    Coreml,
}

/// The choices of `--compute-units`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum UnitsChoice {
    /// The CPU and the Neural Engine
    CpuAndNe,
    /// The CPU and the GPU
    CpuAndGpu,
    /// The CPU alone
    CpuOnly,
    /// Any
    All,
}

/// The choices of `--ane-preset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnePreset {
    /// That of the M1, on which most was measured
    M1,
    /// That of the M5
    M5,
    /// One without faults
    Exact,
}
