//! Palettes of matrices, fitted to what the matrices read where there is text to find that out by.

use std::sync::Mutex;

use lone_lfm::Checkpoint;

use super::{Calibration, Calibrator};
use crate::ConvertError;
use crate::palette::{Matrix, Palettized, palettize};
use crate::workers::Report;

/// Makes the palettes of a conversion.
#[derive(Debug)]
pub(crate) struct Palettizer<'c> {
    calibrator: Option<Mutex<Calibrator<'c>>>,
}

impl<'c> Palettizer<'c> {
    /// # Errors
    /// As [`Calibrator::new`].
    pub(crate) fn new(
        checkpoint: &'c Checkpoint,
        calibration: Option<&Calibration>,
    ) -> Result<Self, ConvertError> {
        let calibrator = calibration.map(|text| Calibrator::new(checkpoint, text).map(Mutex::new));
        Ok(Palettizer { calibrator: calibrator.transpose()? })
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
        let sensitivity = match &self.calibrator {
            None => None,
            Some(calibrator) => {
                let mut calibrator = calibrator.lock().expect("who panics calibrating ends the conversion");
                Some(calibrator.sensitivity(&matrix.tensor, report)?)
            }
        };
        palettize(matrix, sensitivity.as_deref(), report.abandoned()).ok_or(ConvertError::Cancelled)
    }
}
