//! `--precision auto`: how wide the indices of each matrix must be for the logits to come out as wanted.
//!
//! ```text
//! each matrix ─▶ palettes of every width ─▶ what each costs the logits, alone
//!                                                  │
//!      a bundle ◀─ the smallest choice that ◀──────┘
//!                  measures as wanted, all at once
//! ```
//! Costs are measured in the f32 forward, on text that palettes were not fitted to. That they add up is only what the
//! search starts from; what it ends with was measured.

mod probe;
mod selection;
mod store;

use std::collections::BTreeMap;
use std::sync::Mutex;

use lone_lfm::Checkpoint;

use crate::calibrate::{Calibrator, Following, Palettizer};
use crate::convert::Making;
use crate::options::ConvertOptions;
use crate::palette::{Matrix, WeightPrecision, palettize};
use crate::plan::BundlePlan;
use crate::survey::Survey;
use crate::weights::{Source, Storage};
use crate::workers::{self, Report};
use crate::{ConvertError, Note, Phase, Progress};
use probe::Probe;
use selection::{Candidate, Choice};
use store::Chosen;
pub(crate) use store::PaletteStore;

/// Widths there are to choose from, besides fp16.
const WIDTHS: [WeightPrecision; 3] = [WeightPrecision::Lut4, WeightPrecision::Lut6, WeightPrecision::Lut8];

/// Of the text, one sequence in so many is measured on instead of fitted to.
const HELD_OUT: usize = 8;

/// Choices that are measured.
const TRIALS: usize = 8;

/// The smallest way to store the matrices whose logits have a mean cosine of `target` or more with the checkpoint's, on
/// some of the `sequences` of tokens.
///
/// # Errors
/// As calibration and planning have it, and [`ConvertError::Cancelled`].
pub(crate) fn choose<'c>(
    checkpoint: &'c Checkpoint,
    survey: &'c Survey,
    options: &ConvertOptions,
    target: f64,
    sequences: Vec<Vec<u32>>,
    progress: &mut dyn Progress,
) -> Result<Making<'c>, ConvertError> {
    let is_fitted = sequences.len() == 1;
    let (held_out, fitted) = split(sequences);
    let mut plans = Vec::new();
    for precision in WIDTHS {
        let storage = Storage::uniform(precision, options.group);
        plans.push(matrices(BundlePlan::new(checkpoint, survey, options, &storage)?));
    }
    let tensors = by_tensor(&plans);
    let search = Mutex::new(Search {
        calibrator: Calibrator::new(checkpoint, &fitted, Following::Checkpoint)?,
        probe: Probe::new(checkpoint, &held_out)?,
        store: PaletteStore::default(),
    });
    progress.begin(Phase::Choose, tensors.iter().map(|widths| fp16_bytes(widths)).sum());
    let found = workers::spread(&[()], 1, progress, |(), report| {
        let mut search = search.lock().expect("there is one worker");
        let candidates = search.candidates(&tensors, report)?;
        search.smallest(&candidates, 1.0 - target, report)
    })?;
    let Found { exceptions, loss } = found.into_iter().next().expect("one piece of work has one result");
    let search = search.into_inner().expect("who panics searching ends the conversion");
    Ok(Making {
        note: Some(note(&tensors, &exceptions, loss, is_fitted)),
        storage: Storage { exceptions, ..Storage::uniform(WeightPrecision::Fp16, options.group) },
        palettizer: Palettizer::Made(search.store),
    })
}

/// The sequences to measure on, and those to fit to; both are all of them where there is only one.
fn split(sequences: Vec<Vec<u32>>) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    if sequences.len() == 1 {
        return (sequences.clone(), sequences);
    }
    let numbered = sequences.into_iter().enumerate();
    let (held_out, fitted): (Vec<_>, Vec<_>) = numbered.partition(|(number, _)| number % HELD_OUT == 0);
    let tokens = |part: Vec<(usize, Vec<u32>)>| part.into_iter().map(|(_, tokens)| tokens).collect();
    (tokens(held_out), tokens(fitted))
}

fn matrices(plan: BundlePlan<'_>) -> Vec<Matrix<'_>> {
    let sources = plan.packages.into_iter().flat_map(|package| package.sources);
    let palettized = sources.filter_map(|source| match source {
        Source::Palettized(matrix) => Some(matrix),
        Source::Plain(_) => None,
    });
    palettized.collect()
}

/// For each tensor, in the order of the model, its matrices in every width.
fn by_tensor<'p, 'c>(plans: &'p [Vec<Matrix<'c>>]) -> Vec<Vec<&'p [Matrix<'c>]>> {
    let mut widths: Vec<_> =
        plans.iter().map(|plan| plan.chunk_by(|a, b| a.tensor.name() == b.tensor.name())).collect();
    std::iter::from_fn(|| widths.iter_mut().map(Iterator::next).collect()).collect()
}

fn fp16_bytes(widths: &[&[Matrix<'_>]]) -> u64 {
    widths[0].iter().map(|matrix| 2 * (matrix.rows.len() * matrix.tensor.row_len()) as u64).sum()
}

/// What is being searched with.
struct Search<'c> {
    calibrator: Calibrator<'c>,
    probe: Probe<'c>,
    store: PaletteStore<'c>,
}

/// A choice that was measured.
struct Found {
    /// Tensors that are not fp16.
    exceptions: BTreeMap<String, WeightPrecision>,
    /// Mean of 1 - cosine.
    loss: f64,
}

impl<'c> Search<'c> {
    /// Makes all palettes, and measures each tensor's alone.
    fn candidates(
        &mut self,
        tensors: &[Vec<&[Matrix<'c>]>],
        report: &Report<'_>,
    ) -> Result<Vec<Candidate>, ConvertError> {
        let mut candidates = Vec::new();
        for widths in tensors {
            let tensor = widths[0][0].tensor.name().to_owned();
            let sensitivity = self.calibrator.sensitivity(&widths[0][0].tensor, report)?;
            self.probe.advance_to(self.calibrator.layer());
            let precision = WeightPrecision::Fp16;
            let mut choices = vec![Choice { precision, bytes: fp16_bytes(widths), loss: 0.0 }];
            for (precision, matrices) in WIDTHS.into_iter().zip(widths) {
                let mut bytes = 0;
                for matrix in *matrices {
                    let made = palettize(matrix, Some(&sensitivity), report.abandoned());
                    bytes += self.store.insert(matrix, made.ok_or(ConvertError::Cancelled)?);
                }
                let alone = BTreeMap::from([(tensor.clone(), precision)]);
                let loss = self.probe.loss(&Chosen { store: &self.store, precisions: &alone });
                choices.push(Choice { precision, bytes, loss });
                report.advance(0)?;
            }
            candidates.push(Candidate { tensor, choices });
            report.advance(fp16_bytes(widths))?;
        }
        Ok(candidates)
    }

    /// The smallest choice that loses no more than `most`.
    fn smallest(
        &mut self,
        candidates: &[Candidate],
        most: f64,
        report: &Report<'_>,
    ) -> Result<Found, ConvertError> {
        self.probe.rewind();
        let mut best = Found { exceptions: BTreeMap::new(), loss: 0.0 };
        let (mut kept, mut broken) = (0.0, None);
        let mut budget = most;
        for _ in 0..TRIALS {
            let exceptions = selection::within(candidates, budget);
            let loss = self.probe.loss(&Chosen { store: &self.store, precisions: &exceptions });
            if loss <= most {
                kept = budget;
                best = Found { exceptions, loss };
            } else {
                broken = Some(budget);
            }
            budget = broken.map_or(2.0 * budget, |broken| 0.5 * (kept + broken));
            report.advance(0)?;
        }
        Ok(best)
    }
}

fn note(
    tensors: &[Vec<&[Matrix<'_>]>],
    exceptions: &BTreeMap<String, WeightPrecision>,
    loss: f64,
    is_fitted: bool,
) -> Note {
    let count = |precision| exceptions.values().filter(|&&chosen| chosen == precision).count();
    let mut counts = vec![(WeightPrecision::Fp16, tensors.len() - exceptions.len())];
    counts.extend(WIDTHS.iter().rev().map(|&precision| (precision, count(precision))));
    Note::Chosen { counts, cosine: 1.0 - loss, is_fitted }
}
