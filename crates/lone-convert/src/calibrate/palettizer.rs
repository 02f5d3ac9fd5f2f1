//! Palettes of matrices, fitted to what the matrices read where there is text to find that out by.

use std::sync::Mutex;

use lone_lfm::Checkpoint;

use super::{Calibrator, Following};
use crate::ConvertError;
use crate::auto::PaletteStore;
use crate::palette::{Matrix, Palettized, palettize};
use crate::workers::Report;

/// Where the palettes of a conversion come from.
#[derive(Debug)]
pub(crate) enum Palettizer<'c> {
    /// The weights alone.
    Plain,
    /// The weights and what they are multiplied with.
    Calibrated(Box<Mutex<Calibrator<'c>>>),
    /// They are there already.
    Made(PaletteStore<'c>),
}

impl<'c> Palettizer<'c> {
    /// With the tokens of a calibration text, if there is one.
    ///
    /// # Errors
    /// [`ConvertError::Calibration`] if a token is outside the vocabulary.
    pub(crate) fn new(
        checkpoint: &'c Checkpoint,
        sequences: Option<&[Vec<u32>]>,
    ) -> Result<Self, ConvertError> {
        let Some(sequences) = sequences else { return Ok(Palettizer::Plain) };
        let calibrator = Calibrator::new(checkpoint, sequences, Following::Palettes)?;
        Ok(Palettizer::Calibrated(Box::new(Mutex::new(calibrator))))
    }

    /// The parts of a matrix. With calibration, layers must come in their order.
    ///
    /// # Errors
    /// [`ConvertError::Cancelled`], and as [`Calibrator::sensitivity`].
    pub(crate) fn palettize(
        &self,
        matrix: &Matrix<'_>,
        report: &Report<'_>,
    ) -> Result<Vec<Palettized>, ConvertError> {
        let made = match self {
            Palettizer::Plain => palettize(matrix, None, report.abandoned()),
            Palettizer::Calibrated(calibrator) => {
                let mut calibrator = calibrator.lock().expect("who panics calibrating ends the conversion");
                let sensitivity = calibrator.sensitivity(&matrix.tensor, report)?;
                let made = palettize(matrix, Some(&sensitivity), report.abandoned());
                made.inspect(|parts| calibrator.follow(matrix, parts))
            }
            Palettizer::Made(store) => Some(store.parts(matrix).expect("every matrix was palettized before")),
        };
        made.ok_or(ConvertError::Cancelled)
    }
}
