//! What was measured, as `--json` prints it and as tables and pages are made from.

use lone_cpu::Pages;
use lone_cpu::{Isa, cores};
use lone_energy::{Energy, EnergyReport};
use lone_mil::StepProfile;
use serde::Serialize;

use super::Limits;
use super::arm::{Arm, Point};
use super::statistics::Spread;
use crate::args::BenchArgs;

/// A whole run.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) machine: Machine,
    /// Turns each arm had.
    pub(super) repeat: usize,
    /// Tokens decoded after each prompt.
    pub(super) decoded_tokens: usize,
    /// One an arm.
    pub(super) rows: Vec<Row>,
}

/// Where it ran.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    pub(super) cpu: Option<String>,
    pub(super) cores: usize,
    pub(super) instruction_set: String,
    /// Kind of pages that weights were in, and what bandwidth was measured on.
    pub(super) pages: &'static str,
    pub(super) limits: Vec<LimitsReport>,
}

/// How fast memory was read, and f32 multiplied and added.
#[derive(Debug, Serialize)]
pub(super) struct LimitsReport {
    pub(super) threads: usize,
    pub(super) bytes_per_second: Spread,
    pub(super) flops_per_second: Spread,
}

/// One bundle on one number of threads.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) bundle: String,
    pub(super) backend: &'static str,
    /// Whether palettized weights and what they are multiplied with were rounded.
    pub(super) fast_int16: bool,
    pub(super) threads: Option<usize>,
    pub(super) load_seconds: f64,
    /// Memory that came with it and is not a file's: working memory and caches, and weights if they were copied.
    pub(super) private_bytes: Option<u64>,
    pub(super) cache_bytes: u64,
    /// Weights that decoding a token reads.
    pub(super) weight_bytes: Option<u64>,
    pub(super) prefill: PrefillReport,
    pub(super) decode: DecodeReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) verify: Option<VerifyReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) profile: Vec<KindReport>,
}

/// Reading prompts.
#[derive(Debug, Serialize)]
pub(super) struct PrefillReport {
    /// Of the longest prompt, in the middle.
    pub(super) tokens_per_second: f64,
    /// What part of the arithmetic measured in the same turns multiplying with weights took.
    pub(super) arithmetic_fraction: Option<f64>,
    pub(super) by_length: Vec<LengthReport>,
}

/// Reading prompts of one length.
#[derive(Debug, Serialize)]
pub(super) struct LengthReport {
    pub(super) prompt_tokens: usize,
    pub(super) tokens_per_second: Spread,
    pub(super) arithmetic_fraction: Option<f64>,
}

/// Decoding.
#[derive(Debug, Serialize)]
pub(super) struct DecodeReport {
    /// After the shortest prompt, in the middle.
    pub(super) tokens_per_second: f64,
    /// What part of the bandwidth measured in the same turns reading the weights took.
    pub(super) bandwidth_fraction: Option<f64>,
    pub(super) by_context: Vec<ContextReport>,
}

/// Decoding after one length of prompt.
#[derive(Debug, Serialize)]
pub(super) struct ContextReport {
    pub(super) prompt_tokens: usize,
    pub(super) tokens_per_second: Spread,
    pub(super) bandwidth_fraction: Option<f64>,
    /// Of all turns, if there is a meter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) energy: Option<EnergyReport>,
}

/// Passes that check drafted tokens.
#[derive(Debug, Serialize)]
pub(super) struct VerifyReport {
    pub(super) tokens: usize,
    pub(super) seconds: Spread,
    /// How many decode passes after the shortest prompt take as long.
    pub(super) decode_passes: f64,
    pub(super) arithmetic_fraction: Option<f64>,
}

/// All steps of one kind in a decode pass.
#[derive(Debug, Serialize)]
pub(super) struct KindReport {
    pub(super) kind: &'static str,
    pub(super) steps: usize,
    pub(super) seconds: f64,
    /// Of the time of all kinds.
    pub(super) share: f64,
    pub(super) weight_bytes: usize,
}

impl Report {
    pub(super) fn new(args: &BenchArgs, pages: Pages, arms: &[Arm], limits: &[Limits<'_>]) -> Self {
        let limits: Vec<LimitsReport> = limits.iter().filter_map(LimitsReport::of).collect();
        let rows = arms.iter().map(|arm| {
            let same_threads = |report: &&LimitsReport| Some(report.threads) == arm.threads;
            Row::new(arm, args.decoded, limits.iter().find(same_threads), args.shows_profile())
        });
        Report {
            rows: rows.collect(),
            machine: Machine {
                cpu: std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|info| model_name(&info)),
                cores: cores::physical_cores().get(),
                instruction_set: args.isa.unwrap_or_else(Isa::detect).to_string(),
                pages: pages.name(),
                limits,
            },
            repeat: args.repeat,
            decoded_tokens: args.decoded,
        }
    }
}

/// The first `model name` of `/proc/cpuinfo`.
fn model_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

impl LimitsReport {
    fn of(limits: &Limits<'_>) -> Option<Self> {
        Some(LimitsReport {
            threads: limits.pool.threads(),
            bytes_per_second: Spread::of(&limits.bytes_per_second)?,
            flops_per_second: Spread::of(&limits.flops_per_second)?,
        })
    }
}

impl Row {
    /// The backend and how it computed.
    pub(super) fn engine(&self) -> String {
        format!("{}{}", self.backend, if self.fast_int16 { " fast-int16" } else { "" })
    }

    fn new(arm: &Arm, decoded: usize, limits: Option<&LimitsReport>, profiled: bool) -> Self {
        let weight_bytes = arm.weight_bytes();
        let bandwidth = limits.map(|limits| limits.bytes_per_second.median);
        let arithmetic = limits.map(|limits| limits.flops_per_second.median);
        let by_context: Vec<ContextReport> = arm
            .points
            .iter()
            .filter_map(|point| ContextReport::of(point, decoded, weight_bytes, bandwidth))
            .collect();
        let by_length: Vec<LengthReport> = (arm.points.iter())
            .filter_map(|point| LengthReport::of(point, arm.prefill_flops(), arithmetic))
            .collect();
        let first = by_context.first();
        let decode_seconds = first.map_or(0.0, |first| first.tokens_per_second.median.recip());
        let verify = arm.verify.as_ref().and_then(|(tokens, seconds)| {
            let seconds = Spread::of(seconds)?;
            let rate = *tokens as f64 / seconds.median;
            Some(VerifyReport {
                tokens: *tokens,
                seconds,
                decode_passes: seconds.median / decode_seconds,
                arithmetic_fraction: fraction(arm.verify_flops(), rate, arithmetic),
            })
        });
        Row {
            bundle: arm.bundle.clone(),
            backend: arm.backend,
            fast_int16: arm.fast_int16,
            threads: arm.threads,
            load_seconds: arm.load_seconds,
            private_bytes: arm.private_bytes,
            cache_bytes: arm.cache_bytes(),
            weight_bytes,
            prefill: PrefillReport {
                tokens_per_second: by_length.last().map_or(0.0, |last| last.tokens_per_second.median),
                arithmetic_fraction: by_length.last().and_then(|last| last.arithmetic_fraction),
                by_length,
            },
            decode: DecodeReport {
                tokens_per_second: first.map_or(0.0, |first| first.tokens_per_second.median),
                bandwidth_fraction: first.and_then(|first| first.bandwidth_fraction),
                by_context,
            },
            verify,
            profile: if profiled { kinds(&arm.profile()) } else { Vec::new() },
        }
    }
}

impl LengthReport {
    fn of(point: &Point, flops: Option<f64>, arithmetic: Option<f64>) -> Option<Self> {
        let tokens = point.prompt_tokens as f64;
        let tokens_per_second = Spread::of(&point.prefill)?.map(|seconds| tokens / seconds);
        Some(LengthReport {
            prompt_tokens: point.prompt_tokens,
            tokens_per_second,
            arithmetic_fraction: fraction(flops, tokens_per_second.median, arithmetic),
        })
    }
}

impl ContextReport {
    fn of(point: &Point, decoded: usize, weight_bytes: Option<u64>, bandwidth: Option<f64>) -> Option<Self> {
        let tokens_per_second = Spread::of(&point.decode)?.map(f64::recip);
        let bytes = weight_bytes.map(|bytes| bytes as f64);
        Some(ContextReport {
            prompt_tokens: point.prompt_tokens,
            tokens_per_second,
            bandwidth_fraction: fraction(bytes, tokens_per_second.median, bandwidth),
            energy: Energy::sum(&point.energy)
                .map(|energy| EnergyReport::of(&energy, decoded * point.energy.len())),
        })
    }
}

/// What part of `limit` is needed for `tokens_per_second`, each of which takes so much of it.
fn fraction(a_token: Option<f64>, tokens_per_second: f64, limit: Option<f64>) -> Option<f64> {
    Some(a_token? * tokens_per_second / limit?)
}

/// The steps of a pass summed up by kind, the longest first.
fn kinds(steps: &[StepProfile]) -> Vec<KindReport> {
    let mut kinds: Vec<KindReport> = Vec::new();
    for step in steps.iter().filter(|step| step.passes > 0) {
        let seconds = step.time.as_secs_f64() / step.passes as f64;
        let known = kinds.iter().position(|known| known.kind == step.kind);
        let index = known.unwrap_or_else(|| {
            kinds.push(KindReport { kind: step.kind, steps: 0, seconds: 0.0, share: 0.0, weight_bytes: 0 });
            kinds.len() - 1
        });
        let kind = &mut kinds[index];
        kind.steps += 1;
        kind.seconds += seconds;
        kind.weight_bytes += step.weight_bytes;
    }
    let total: f64 = kinds.iter().map(|kind| kind.seconds).sum();
    kinds.iter_mut().for_each(|kind| kind.share = kind.seconds / total);
    kinds.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    kinds
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn steps_of_a_kind_are_one_line_and_the_longest_comes_first() {
        let step = |kind, passes, millis| StepProfile {
            kind,
            step: String::new(),
            weight_bytes: 10,
            multiply_adds: 5,
            bytes: 12,
            passes,
            time: Duration::from_millis(millis),
        };
        let kinds = kinds(&[
            step("copy", 2, 2),
            step("projection", 2, 10),
            step("projection", 2, 4),
            step("copy", 0, 0),
        ]);
        let seen: Vec<_> = kinds.iter().map(|kind| (kind.kind, kind.steps, kind.weight_bytes)).collect();
        assert_eq!(seen, [("projection", 2, 20), ("copy", 1, 10)]);
        assert!((kinds[0].seconds - 0.007).abs() < 1e-12 && (kinds[0].share - 0.875).abs() < 1e-12);
    }

    #[test]
    fn a_processor_is_called_what_it_calls_itself() {
        assert_eq!(model_name("processor\t: 0\nmodel name\t: Fast One\n"), Some("Fast One".into()));
        assert_eq!(model_name(""), None);
    }
}
