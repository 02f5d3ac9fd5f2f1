//! The conversion itself, in its order.

use std::path::Path;

use lone_bundle::{Bundle, Embeddings, Provenance, SCHEMA};
use lone_lfm::{ChatTemplate, Checkpoint, Tokenizer, TokenizerError};

use crate::calibrate::{Palettizer, sequences};
use crate::extents::MAX_CHANNELS;
use crate::plan::BundlePlan;
use crate::staging::{Staging, Target};
use crate::survey::Survey;
use crate::weights::{Rectangle, Storage};
use crate::write::{BundleFiles, EMBEDDINGS_FILE};
use crate::{ConvertError, ConvertOptions, Note, Phase, Progress, auto, facts, space};

/// A bundle that was written.
#[derive(Debug)]
pub struct Conversion {
    /// The content of its bundle.json.
    pub bundle: Bundle,
    /// What deserves a word to the user.
    pub notes: Vec<Note>,
}

/// Writes the bundle of `checkpoint` to the directory `out`, which comes to be whole or not at all.
///
/// # Errors
/// [`ConvertError`]: options that make no sense, weights that fp16 cannot hold, a target that exists, a full disk,
/// and [`ConvertError::Cancelled`] if `progress` says so. In all cases the target is as it was.
pub fn convert(
    checkpoint: &Checkpoint,
    out: &Path,
    options: &ConvertOptions,
    progress: &mut dyn Progress,
) -> Result<Conversion, ConvertError> {
    options.check(checkpoint.config())?;
    check_widths(checkpoint)?;
    let text_notes = check_text_files(checkpoint)?;
    let target = Target::new(out, options.force)?;
    let text = options.calibration().map(|text| sequences(checkpoint, text)).transpose()?;
    let survey = Survey::new(checkpoint, progress)?;
    let Making { storage, palettizer, note } = match (options.target_cosine, text) {
        (Some(target), Some(text)) => auto::choose(checkpoint, &survey, options, target, text, progress)?,
        (_, text) => {
            let palettizer = Palettizer::new(checkpoint, text.as_deref())?;
            Making { storage: options.storage(), palettizer, note: None }
        }
    };
    let plan = BundlePlan::new(checkpoint, &survey, options, &storage)?;

    let embeddings = Rectangle::whole(checkpoint.embed());
    let bytes = plan.weight_bytes() + 2 * embeddings.elements() as u64;
    let staging = target.stage()?;
    space::check(staging.path(), out, bytes)?;
    let phase = if matches!(palettizer, Palettizer::Calibrated(_)) { Phase::Fit } else { Phase::Write };
    progress.begin(phase, bytes);
    let conversion = write(checkpoint, options, &survey, plan, palettizer, &staging, progress)
        .and_then(|conversion| staging.commit().map(|()| conversion));
    let mut conversion = conversion.map_err(|error| error.with_space(out, bytes))?;
    conversion.notes.extend(text_notes.into_iter().chain(note));
    Ok(conversion)
}

/// How matrices come to be stored.
pub(crate) struct Making<'c> {
    pub(crate) storage: Storage,
    pub(crate) palettizer: Palettizer<'c>,
    pub(crate) note: Option<Note>,
}

fn write(
    checkpoint: &Checkpoint,
    options: &ConvertOptions,
    survey: &Survey,
    plan: BundlePlan<'_>,
    palettizer: Palettizer<'_>,
    staging: &Staging,
    progress: &mut dyn Progress,
) -> Result<Conversion, ConvertError> {
    let mut files = BundleFiles::new(staging.path());
    let embeddings = Rectangle::whole(checkpoint.embed());
    let graphs = files.write_weights(embeddings, &plan.packages, &palettizer, progress)?;
    files.copy_companions(checkpoint)?;
    let config = checkpoint.config();
    let bundle = Bundle {
        schema: SCHEMA,
        model: facts::model_facts(checkpoint, options.name.as_deref(), survey.parameters),
        ropes: plan.session.ropes,
        embeddings: Embeddings {
            file: EMBEDDINGS_FILE.into(),
            rows: config.vocab_size,
            columns: config.hidden_size,
        },
        caches: plan.session.caches,
        graphs,
        provenance: Provenance {
            lone_version: env!("CARGO_PKG_VERSION").into(),
            source_hash: survey.source_hash.clone(),
            flags: options.flags(),
        },
        placement: None,
        files: files.list()?,
    };
    bundle.save(staging.path())?;
    let mut notes: Vec<Note> = checkpoint.warnings().iter().cloned().map(Note::from).collect();
    notes.extend(plan.notes);
    Ok(Conversion { bundle, notes })
}

/// Refuses a tokenizer or a chat template that the bundle could not be run with; none at all is only worth a note.
fn check_text_files(checkpoint: &Checkpoint) -> Result<Vec<Note>, ConvertError> {
    let vocab_size = checkpoint.config().vocab_size;
    let note = match Tokenizer::open(checkpoint.dir()) {
        Ok(tokenizer) => match tokenizer.tokens_outside(vocab_size) {
            0 => None,
            count => Some(Note::TokensOutsideVocabulary { count, vocab_size }),
        },
        Err(TokenizerError::Missing { .. }) => Some(Note::NoTokenizer),
        Err(error) => return Err(error.into()),
    };
    ChatTemplate::open(checkpoint.dir())?;
    Ok(note.into_iter().collect())
}

/// Refuses models with activations of more channels than the Neural Engine has.
fn check_widths(checkpoint: &Checkpoint) -> Result<(), ConvertError> {
    let config = checkpoint.config();
    let widths = [
        ("three times the hidden size", 3 * config.hidden_size),
        ("the feed-forward width", config.ffn_size),
        ("the width of all heads", config.heads * config.head_dim),
    ];
    match widths.into_iter().find(|&(_, width)| width > MAX_CHANNELS) {
        Some((what, found)) => Err(ConvertError::TooWide { what, found, most: MAX_CHANNELS }),
        None => Ok(()),
    }
}
