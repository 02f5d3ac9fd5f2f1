//! The whole bundle, planned: how layers and vocabulary are cut, every program, every size.

use lone_bundle::Span;
use lone_lfm::checkpoint::Checkpoint;

use crate::extents::{HEAD_SLICE_BYTES, MAX_CHANNELS, MAX_PACKAGE_BYTES, even_spans};
use crate::function::Pass;
use crate::package::PackagePlan;
use crate::precision::Precision;
use crate::session::Session;
use crate::survey::Survey;
use crate::weights::{PackageWeights, Storage};
use crate::{ConvertError, ConvertOptions, Note, chunk, head};

/// What will be written.
#[derive(Debug)]
pub(crate) struct BundlePlan<'c> {
    pub(crate) session: Session,
    /// Chunks in layer order, then heads in vocabulary order.
    pub(crate) packages: Vec<PackagePlan<'c>>,
    pub(crate) notes: Vec<Note>,
}

impl<'c> BundlePlan<'c> {
    pub(crate) fn new(
        checkpoint: &'c Checkpoint,
        survey: &'c Survey,
        options: &ConvertOptions,
        storage: &Storage,
    ) -> Result<Self, ConvertError> {
        let config = checkpoint.config();
        let precision = if options.precision_rules { Precision::Rules } else { Precision::Naive };
        let session = Session::new(config, options);
        let mut notes = Vec::new();
        let (ctx, max_positions) = (options.longest_ctx(), config.max_positions);
        if ctx > max_positions {
            notes.push(Note::LongContext { ctx, max_positions });
        }
        let mut packages = Vec::new();
        let weights = || PackageWeights::new(survey, precision, storage.clone());
        let passes = Pass::of_chunks(options);
        for span in chunk_spans(&layer_bytes(checkpoint), options.layers_per_model, &mut notes) {
            packages.push(chunk::plan(checkpoint, &session, weights(), span, &passes)?);
        }
        let passes = Pass::of_heads(options);
        for span in head_spans(config.vocab_size, config.hidden_size, options.head_chunks) {
            packages.push(head::plan(checkpoint, weights(), span, &passes)?);
        }
        for package in &packages {
            let new = package.notes.iter().filter(|note| !notes.contains(note)).cloned();
            notes.extend(new.collect::<Vec<_>>());
        }
        Ok(BundlePlan { session, packages, notes })
    }

    /// Bytes of weights, in all packages.
    pub(crate) fn weight_bytes(&self) -> u64 {
        self.packages.iter().map(|package| package.weight_bytes).sum()
    }
}

fn layer_bytes(checkpoint: &Checkpoint) -> Vec<u64> {
    let bytes_of = |layer| {
        let mut bytes = 0;
        checkpoint.layer(layer).map(|tensor| bytes += 2 * tensor.len() as u64);
        bytes
    };
    (0..checkpoint.config().layers.len()).map(bytes_of).collect()
}

/// Runs of `asked` layers, or of fewer where the weights of so many would be too much for a package.
fn chunk_spans(layer_bytes: &[u64], asked: usize, notes: &mut Vec<Note>) -> Vec<Span> {
    let fits = |&count: &usize| {
        layer_bytes.chunks(count).all(|chunk| chunk.iter().sum::<u64>() <= MAX_PACKAGE_BYTES)
    };
    let used = (1..=asked.min(layer_bytes.len())).rev().find(fits).unwrap_or(1);
    if used < asked.min(layer_bytes.len()) {
        notes.push(Note::FewerLayers { asked, used, most_bytes: MAX_PACKAGE_BYTES });
    }
    (0..layer_bytes.len())
        .step_by(used)
        .map(|start| Span { start, count: used.min(layer_bytes.len() - start) })
        .collect()
}

/// `asked` slices of the vocabulary, or for 0 as many as keep each near the usual size.
fn head_spans(vocab_size: usize, hidden_size: usize, asked: usize) -> Vec<Span> {
    let count = match asked {
        0 => {
            let most_rows = (HEAD_SLICE_BYTES / (2 * hidden_size)).clamp(1, MAX_CHANNELS);
            vocab_size.div_ceil(most_rows)
        }
        asked => asked,
    };
    even_spans(vocab_size, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(spans: &[Span]) -> Vec<usize> {
        spans.iter().map(|span| span.count).collect()
    }

    #[test]
    fn chunks_have_as_many_layers_as_asked_for() {
        let mut notes = Vec::new();
        assert_eq!(counts(&chunk_spans(&[1; 10], 4, &mut notes)), [4, 4, 2]);
        assert_eq!(counts(&chunk_spans(&[1; 10], 100, &mut notes)), [10]);
        assert_eq!(notes, []);
    }

    #[test]
    fn chunks_too_heavy_for_a_package_have_fewer_layers_and_a_note() {
        let mut notes = Vec::new();
        assert_eq!(counts(&chunk_spans(&[400_000_000; 5], 4, &mut notes)), [2, 2, 1]);
        assert_eq!(notes, [Note::FewerLayers { asked: 4, used: 2, most_bytes: 900_000_000 }]);
        assert_eq!(counts(&chunk_spans(&[1_000_000_000; 2], 4, &mut Vec::new())), [1, 1]);
    }

    #[test]
    fn head_slices_are_of_about_128_mb_and_never_wider_than_the_engine() {
        assert_eq!(counts(&head_spans(65_536, 1024, 0)), [65_536]);
        assert_eq!(counts(&head_spans(65_536, 2048, 0)), [32_768; 2]);
        assert_eq!(counts(&head_spans(128_000, 2048, 0)), [32_000; 4]);
        assert_eq!(counts(&head_spans(128_000, 16, 0)), [64_000; 2]);
        assert_eq!(counts(&head_spans(300, 64, 7)), [43, 43, 43, 43, 43, 43, 42]);
    }
}
