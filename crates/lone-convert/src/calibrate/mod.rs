//! What the inputs of every matrix look like, found by running text through the model in f32.
//!
//! ```text
//! checkpoint's   x ─▶ matrix ─▶ x ─▶ matrix ─▶ x   what matrices should get
//! palettized     x̂ ─▶ matrix ─▶ x̂ ─▶ matrix ─▶ x̂   what they will get
//!                     └ palettized as soon as its x̂ is known, and gone through as it then is
//! ```
//! All sequences go together from stop to stop, so that memory holds the moments of one, and every matrix is read once.

mod expanded;
mod moments;
mod palettizer;
mod text;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use lone_lfm::{Checkpoint, Passage, Reference, Tensor};
use ndarray::ArrayView2;

use crate::ConvertError;
use crate::palette::{Drift, Matrix, Palettized, Sensitivity};
use crate::workers::Report;
use expanded::Expanded;
use moments::{second_moments, share_alike};
pub(crate) use palettizer::Palettizer;
pub(crate) use text::sequences;

/// What is added to the second moment of each input, whose mean is 1: inputs that the text does not excite still
/// count for something.
const DAMPING: f32 = 0.03;

/// Text that palettes are fitted to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Calibration {
    /// Conversations and prose that come with lone.
    Builtin,
    /// A file of plain text; or, if it is called so, a JSON list of texts and of conversations, which are objects with
    /// `messages` and perhaps `tools`.
    File(PathBuf),
}

impl Calibration {
    /// As it is called on the command line.
    pub fn name(&self) -> Cow<'_, str> {
        match self {
            Calibration::Builtin => Cow::Borrowed("builtin"),
            Calibration::File(path) => path.to_string_lossy(),
        }
    }
}

/// What comes in front of the matrices that inputs are wanted of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Following {
    /// The checkpoint's matrices.
    Checkpoint,
    /// The palettes that were made of them.
    Palettes,
}

/// A model on its way through the calibration text.
#[derive(Debug)]
pub(crate) struct Calibrator<'c> {
    checkpoint: &'c Checkpoint,
    /// The text behind the checkpoint's matrices.
    wanted: Passage,
    /// The same behind palettes, if those are followed.
    palettized: Option<Passage>,
    /// What the palettes of the matrices at this stop stand for.
    expanded: Expanded,
    /// Of the matrices at this stop, once asked for.
    found: Option<Arc<Sensitivity>>,
}

impl<'c> Calibrator<'c> {
    /// In front of the first matrices, with the tokens of some text.
    ///
    /// # Errors
    /// [`ConvertError::Calibration`] if a token is outside the vocabulary.
    pub(crate) fn new(
        checkpoint: &'c Checkpoint,
        sequences: &[Vec<u32>],
        following: Following,
    ) -> Result<Self, ConvertError> {
        let wanted = Reference::new(checkpoint).passage(sequences).map_err(ConvertError::calibration)?;
        Ok(Calibrator {
            checkpoint,
            palettized: (following == Following::Palettes).then(|| wanted.clone()),
            wanted,
            expanded: Expanded::default(),
            found: None,
        })
    }

    /// The layer of the matrix that was asked for last; of the head, as many as there are.
    pub(crate) fn layer(&self) -> usize {
        self.wanted.layer(&self.reference())
    }

    /// Of the inputs of a matrix, which reads where that asked for before does or further on.
    ///
    /// # Errors
    /// [`ConvertError::Calibration`] if the inputs are beyond f32, [`ConvertError::Cancelled`].
    ///
    /// # Panics
    /// If the matrix was left behind.
    pub(crate) fn sensitivity(
        &mut self,
        tensor: &Tensor<'_>,
        report: &Report<'_>,
    ) -> Result<Arc<Sensitivity>, ConvertError> {
        loop {
            let readers = self.wanted.readers(&self.reference());
            if readers.iter().any(|reader| reader.name() == tensor.name()) {
                let found = match self.found.take() {
                    Some(found) => found,
                    None => Arc::new(self.measure(&readers)?),
                };
                report.advance(0)?;
                return Ok(self.found.insert(found).clone());
            }
            self.advance(report)?;
        }
    }

    /// Takes note of the palettes of a matrix that was asked for last.
    pub(crate) fn follow(&mut self, matrix: &Matrix<'_>, parts: &[Palettized]) {
        // Nothing comes behind the head.
        if self.palettized.is_some() && self.layer() < self.checkpoint.config().layers.len() {
            self.expanded.insert(matrix, parts);
        }
    }

    fn reference(&self) -> Reference<'c> {
        Reference::new(self.checkpoint)
    }

    /// Goes on through the matrices at this stop.
    fn advance(&mut self, report: &Report<'_>) -> Result<(), ConvertError> {
        let reference = self.reference();
        reference.advance(&mut self.wanted);
        report.advance(0)?;
        if let Some(palettized) = &mut self.palettized {
            reference.with_substitute(&self.expanded).advance(palettized);
            report.advance(0)?;
        }
        self.expanded = Expanded::default();
        self.found = None;
        Ok(())
    }

    /// What the text says of the inputs of `readers`, the matrices at this stop.
    fn measure(&self, readers: &[Tensor<'_>]) -> Result<Sensitivity, ConvertError> {
        let (name, columns) = (readers[0].name(), readers[0].row_len());
        let inputs = |passage: &'_ Passage| {
            let tokens = passage.read().len() / columns;
            ArrayView2::from_shape((tokens, columns), passage.read())
                .expect("inputs are whole rows")
                .to_owned()
        };
        let mut wanted = inputs(&self.wanted);
        let shares = share_alike(&wanted);
        wanted *= &shares;
        let (moments, drift) = match &self.palettized {
            None => (second_moments(&wanted), None),
            Some(palettized) => {
                let mut read = inputs(palettized);
                read *= &shares;
                wanted -= &read;
                let rows: usize = readers.iter().map(Tensor::rows).sum();
                (second_moments(&read), Some(Drift::new(wanted, read, rows)))
            }
        };
        let is_finite = moments.iter().all(|moment| moment.is_finite());
        if !is_finite || drift.as_ref().is_some_and(|drift| !drift.is_finite()) {
            return Err(ConvertError::calibration(format_args!("what `{name}` reads is beyond f32")));
        }
        Ok(Sensitivity::new(&moments, drift, DAMPING))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::palette::{PaletteFormat, WeightPrecision, palettize};
    use crate::workers;

    fn whole<'c>(tensor: Tensor<'c>) -> Matrix<'c> {
        let (rows, parts) = (0..tensor.rows(), std::iter::once(0..tensor.row_len()).collect());
        let format = PaletteFormat::new(WeightPrecision::Lut4, 0, tensor.rows()).unwrap();
        Matrix { tensor, rows, parts, scale: 1.0, format }
    }

    #[test]
    fn matrices_read_what_the_palettes_in_front_of_them_give() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/tiny-lfm3");
        let checkpoint = Checkpoint::open(&dir).unwrap();
        let reference = Reference::new(&checkpoint);
        let sequences = [vec![1, 5, 9, 20, 7], vec![3, 4]];
        let through_two_layers = workers::spread(&[()], 1, &mut (), |(), report| {
            let mut calibrator = Calibrator::new(&checkpoint, &sequences, Following::Palettes)?;
            let [mut plain, mut followed] = [(); 2].map(|()| reference.passage(&sequences).unwrap());
            while plain.layer(&reference) < 2 {
                let mut expanded = Expanded::default();
                for reader in plain.readers(&reference) {
                    let sensitivity = calibrator.sensitivity(&reader, report)?;
                    assert_eq!(calibrator.wanted.read(), plain.read());
                    assert_eq!(calibrator.palettized.as_ref().unwrap().read(), followed.read());
                    let matrix = whole(reader);
                    let parts = palettize(&matrix, Some(&sensitivity), report.abandoned()).unwrap();
                    calibrator.follow(&matrix, &parts);
                    expanded.insert(&matrix, &parts);
                }
                reference.advance(&mut plain);
                reference.with_substitute(&expanded).advance(&mut followed);
                assert_ne!(plain.read(), followed.read());
            }
            Ok(())
        });
        through_two_layers.unwrap();
    }
}
