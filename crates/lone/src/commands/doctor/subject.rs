//! What every backend is tried with: a bundle, some tokens, and what should come of them.

use std::path::PathBuf;

use lone_bundle::{Bundle, Role};
use lone_convert::ConvertOptions;
use lone_cpu::{CpuBackend, CpuOptions};
use lone_engine::{LoadOptions, Runtime};
use lone_lfm::Checkpoint;
use lone_verify::{Candidate, Record};

use crate::args::DoctorArgs;
use crate::commands::Context;
use crate::failure::{Failure, UserError};
use crate::prompt::Prompt;
use crate::source::ModelSource;
use crate::{bundle, converted};

/// What is read where there is a tokenizer.
const TEXT: &str = "The sky is blue because air scatters short waves of light more than long ones. \
    In the evening the light has come a longer way, and what is left of it is red.";
/// Most tokens that are read; the short ones of a bundle's contexts hold them, and some to be decoded.
const MOST_TOKENS: usize = 48;
/// Shapes that a checkpoint is converted for: small ones, but every kind.
const CTX: usize = 256;
const PREFILL: usize = 16;
const SPEC_DRAFTS: usize = 4;

/// The subject of all trials.
pub(super) struct Subject {
    pub(super) dir: PathBuf,
    pub(super) bundle: Bundle,
    pub(super) tokens: Vec<u32>,
    /// What should come of the tokens.
    pub(super) expected: Record,
    /// Who says so.
    pub(super) reference: &'static str,
    /// Files that are not as they were written.
    pub(super) damaged: Vec<String>,
    /// What to do about those.
    pub(super) remedy: String,
}

impl Subject {
    /// Converts what `args` name if need be, and has the reference read.
    ///
    /// # Errors
    /// As the model has it.
    pub(super) fn prepare(args: &DoctorArgs, context: &Context) -> Result<Self, Failure> {
        let (dir, checkpoint) = match &args.bundle {
            Some(dir) => (dir.clone(), None),
            None => {
                let checkpoint = ModelSource::resolve(&args.model)?.checkpoint(context)?;
                let dir = converted::bundle_of(&checkpoint, &options(), context)?;
                (dir, Some(Checkpoint::open(&checkpoint.dir)?))
            }
        };
        let bundle = Bundle::open(&dir)?;
        check_decodes(&bundle)?;
        let damaged = bundle::damaged_files(&bundle, &dir, &context.ui)?;
        let damaged = damaged.into_iter().map(|file| file.path).collect();
        let tokens = tokens(&dir, &bundle)?;
        let remedy = match &checkpoint {
            Some(_) => format!("remove {}, so that it is converted again", dir.display()),
            None => bundle::REMEDY.to_owned(),
        };
        let (expected, reference) = match &checkpoint {
            Some(checkpoint) => (
                Record::of_checkpoint(checkpoint, &tokens, &context.interrupt)?,
                "the checkpoint, computed in f32",
            ),
            None => (on_the_cpu(&dir, &tokens)?, "its decode passes on the cpu backend"),
        };
        Ok(Subject { dir, bundle, tokens, expected, reference, damaged, remedy })
    }

    /// The kinds of pass the bundle has, in order.
    pub(super) fn roles(&self) -> Vec<Role> {
        let functions = self.bundle.chunks().flat_map(|graph| &graph.functions);
        let mut roles: Vec<Role> = functions.map(|function| function.role).collect();
        roles.sort();
        roles.dedup();
        roles
    }
}

/// Refuses a bundle that cannot generate, which is half of what is examined.
fn check_decodes(bundle: &Bundle) -> Result<(), UserError> {
    let mut functions = bundle.chunks().flat_map(|graph| &graph.functions);
    if functions.any(|function| function.role == Role::Decode) {
        return Ok(());
    }
    Err(UserError::new(format_args!(
        "{} has no decode functions, and `lone doctor` decodes with every backend",
        bundle.model.name
    ))
    .with_hint("convert without --prefill-only, or compare with `lone verify --function prefill`"))
}

fn options() -> ConvertOptions {
    ConvertOptions {
        ctx: vec![CTX],
        prefill: vec![PREFILL],
        spec_drafts: Some(SPEC_DRAFTS),
        ..ConvertOptions::default()
    }
}

fn tokens(dir: &std::path::Path, bundle: &Bundle) -> Result<Vec<u32>, Failure> {
    let room = bundle.contexts().first().map_or(1, |ctx| ctx / 2).clamp(1, MOST_TOKENS);
    let mut tokens = match bundle::tokenizer(dir)? {
        Some(tokenizer) => Prompt::Text(TEXT.into()).tokens(Some(&tokenizer), dir, &bundle.model)?,
        None => (0..MOST_TOKENS).map(|i| ((i * 7919 + 13) % bundle.model.vocab_size) as u32).collect(),
    };
    tokens.truncate(room);
    Ok(tokens)
}

fn on_the_cpu(dir: &std::path::Path, tokens: &[u32]) -> Result<Record, Failure> {
    let backend = CpuBackend::new(CpuOptions::default());
    let options = LoadOptions { roles: vec![Role::Decode], ..LoadOptions::default() };
    let mut runtime = Runtime::load(dir, &backend, &options)?;
    let mut candidate = Candidate::new(&mut runtime, Role::Decode)?;
    candidate.read(tokens, &|_| true, &mut ())?;
    Ok(candidate.into_record())
}
