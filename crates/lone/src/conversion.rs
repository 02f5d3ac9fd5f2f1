//! A conversion as the program does it: flags to options, progress and Ctrl-C connected.

use std::path::Path;
use std::time::Instant;

use lone_bundle::Bundle;
use lone_convert::{ConvertError, ConvertOptions, Phase, WeightPrecision};
use lone_lfm::Checkpoint;

use crate::args::{BackendChoice, ConversionArgs, Precision};
use crate::backend;
use crate::commands::Context;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::placement;
use crate::source::CheckpointDir;
use crate::ui::{Progress, Ui};

/// The cosine that `--precision auto` aims at if not told.
const USUAL_TARGET: f64 = 0.999;

/// A bundle that was written, and what it took.
#[derive(Debug)]
pub(crate) struct Converted {
    pub(crate) bundle: Bundle,
    /// What the user was told of.
    pub(crate) notes: Vec<String>,
    /// Of all files.
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
}

/// What the flags ask of the converter.
///
/// # Errors
/// If they contradict each other, whatever the model.
pub(crate) fn options(args: &ConversionArgs) -> Result<ConvertOptions, ConvertError> {
    let default = ConvertOptions::default();
    let ctx = args.ctx.clone().map_or(default.ctx, ascending);
    let shortest = ctx.first().copied().unwrap_or_default();
    let usual_prefill = || default.prefill.iter().map(|&tokens| tokens.min(shortest)).collect();
    let options = ConvertOptions {
        // Who asks for a small context need not ask for small passes too.
        prefill: args.prefill.clone().map_or_else(usual_prefill, ascending),
        ctx,
        spec_drafts: args.spec_drafts.or(default.spec_drafts),
        layers_per_model: args.layers_per_model.unwrap_or(default.layers_per_model),
        head_chunks: args.head_chunks.unwrap_or(default.head_chunks),
        decode_only: args.decode_only,
        prefill_only: args.prefill_only,
        ring: !args.no_ring,
        precision: args.precision.and_then(weight_precision).unwrap_or(default.precision),
        target_cosine: target_cosine(args)?,
        group: args.group,
        calibrate: args.calibrate.clone(),
        precision_rules: !args.no_precision_rules,
        ..default
    };
    options.check_flags()?;
    Ok(options)
}

/// Each of `numbers` once, the smallest first.
fn ascending(mut numbers: Vec<usize>) -> Vec<usize> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// The one precision of all weights, if there is one.
fn weight_precision(precision: Precision) -> Option<WeightPrecision> {
    match precision {
        Precision::Fp16 => Some(WeightPrecision::Fp16),
        Precision::Lut4 => Some(WeightPrecision::Lut4),
        Precision::Lut6 => Some(WeightPrecision::Lut6),
        Precision::Lut8 => Some(WeightPrecision::Lut8),
        Precision::Auto => None,
    }
}

fn target_cosine(args: &ConversionArgs) -> Result<Option<f64>, ConvertError> {
    if args.precision == Some(Precision::Auto) {
        return Ok(Some(args.target_cos.unwrap_or(USUAL_TARGET)));
    }
    match args.target_cos {
        None => Ok(None),
        Some(_) => Err(ConvertError::Conflict {
            first: "--target-cos",
            second: "a fixed --precision",
            why: "only `--precision auto` aims at a cosine",
        }),
    }
}

/// Converts the checkpoint at `source` to a bundle at `out`, which comes to be whole or not at all. With `plan`, Core ML is asked
/// where it will run, if that is what models run on here.
///
/// # Errors
/// As the checkpoint and the converter have it; [`Failure::Interrupted`] on Ctrl-C.
pub(crate) fn convert(
    source: &CheckpointDir,
    out: &Path,
    options: &ConvertOptions,
    plan: bool,
    context: &Context,
) -> Result<Converted, Failure> {
    let start = Instant::now();
    let checkpoint = Checkpoint::open(&source.dir)?;
    let mut watcher = Watcher { ui: &context.ui, interrupt: &context.interrupt, progress: None };
    let options = ConvertOptions { name: Some(source.name.clone()), ..options.clone() };
    let mut conversion = lone_convert::convert(&checkpoint, out, &options, &mut watcher)?;
    let seconds = start.elapsed().as_secs_f64();
    drop(watcher);
    for note in &conversion.notes {
        if note.is_warning() {
            context.ui.warn(note);
        } else {
            context.ui.note(note);
        }
    }
    let notes: Vec<String> = conversion.notes.iter().map(ToString::to_string).collect();
    if plan && backend::auto(&context.environment)? == BackendChoice::Coreml {
        placement::record(out, &mut conversion.bundle, context)?;
    }
    let bytes = conversion.bundle.files.iter().map(|file| file.bytes).sum();
    Ok(Converted { bundle: conversion.bundle, notes, bytes, seconds })
}

/// Shows the converter's progress and tells it of Ctrl-C.
struct Watcher<'a> {
    ui: &'a Ui,
    interrupt: &'a Interrupt,
    progress: Option<Progress<'a>>,
}

impl lone_convert::Progress for Watcher<'_> {
    fn begin(&mut self, phase: Phase, bytes: u64) {
        let what = match phase {
            Phase::Survey => "reading",
            Phase::Choose => "measuring",
            Phase::Fit => "fitting palettes",
            Phase::Write => "writing",
        };
        // The bar before this one goes first, so that there is never more than one.
        self.progress = None;
        self.progress = Some(self.ui.progress(what, bytes));
    }

    fn advance(&mut self, bytes: u64) {
        if let Some(progress) = &mut self.progress {
            progress.advance(bytes);
        }
    }

    fn is_cancelled(&self) -> bool {
        self.interrupt.is_raised()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_typed_is_the_converters_default() {
        assert_eq!(options(&ConversionArgs::default()).unwrap(), ConvertOptions::default());
    }

    #[test]
    fn a_cosine_is_aimed_at_by_auto_alone() {
        let args = |precision, target_cos| {
            options(&ConversionArgs { precision, target_cos, ..ConversionArgs::default() })
        };
        assert_eq!(args(Some(Precision::Auto), None).unwrap().target_cosine, Some(USUAL_TARGET));
        assert_eq!(args(Some(Precision::Auto), Some(0.9)).unwrap().target_cosine, Some(0.9));
        let error = args(Some(Precision::Lut4), Some(0.9)).unwrap_err();
        assert!(error.to_string().starts_with("--target-cos and a fixed --precision do not go"), "{error}");
    }

    #[test]
    fn lists_may_be_typed_in_any_order_and_with_repeats() {
        let args = ConversionArgs {
            ctx: Some(vec![512, 64, 512]),
            prefill: Some(vec![64, 16, 64]),
            ..ConversionArgs::default()
        };
        let options = options(&args).unwrap();
        assert_eq!((options.ctx, options.prefill), (vec![64, 512], vec![16, 64]));
    }

    #[test]
    fn passes_fit_a_small_context_unless_they_are_typed() {
        let small = ConversionArgs { ctx: Some(vec![32, 4096]), ..ConversionArgs::default() };
        assert_eq!(options(&small).unwrap().prefill, [32]);
        let typed = ConversionArgs { prefill: Some(vec![8, 16]), ..small.clone() };
        assert_eq!(options(&typed).unwrap().prefill, [8, 16]);
        let error = options(&ConversionArgs { prefill: Some(vec![64]), ..small }).unwrap_err();
        assert!(error.to_string().starts_with("--prefill must be 1 to 32"), "{error}");
    }
}
