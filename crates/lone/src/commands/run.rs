//! `lone run`: one prompt, one answer.

mod answer;
mod report;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use lone_bundle::Bundle;
use lone_convert::ConvertOptions;
use lone_engine::{FinishReason, Generation, LoadOptions, Request, RequestError, Runtime, SessionOptions};
use lone_lfm::{Tokenizer, TokenizerError};

use super::Context;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::prompt::Prompt;
use crate::source::ModelSource;
use crate::{backend, conversion, converted, sampling};
use answer::Answer;
use report::{Report, Setting};

/// Answers the prompt in `args`.
///
/// # Errors
/// As the prompt, the model and the backend have it; [`Failure::Interrupted`] after Ctrl-C, when what there was of
/// the answer has been shown.
pub(crate) fn execute(args: &RunArgs, context: &Context) -> Result<(), Failure> {
    // What can be refused at once comes first, then what the user has to type, then what takes long.
    let source = Source::resolve(args)?;
    let backend = backend::choose(&args.engine)?;
    let prompt = Prompt::read(args, &context.ui)?;
    context.watch_for_interrupts();
    let dir = source.bundle_dir(&prompt, context)?;

    let bundle = Bundle::open(&dir)?;
    let tokenizer = open_tokenizer(&dir)?;
    let tokens = prompt.tokens(tokenizer.as_deref(), &dir, &bundle.model)?;
    check_length(tokens.len(), &bundle)?;
    let request = Request {
        prompt: tokens,
        sampling: sampling::resolve(&args.sampling, &bundle.model.sampling),
        max_new_tokens: args.max_new_tokens,
        stop_tokens: bundle.model.eos_token_ids.clone(),
        stop: args.stop.clone(),
        ..Request::default()
    };

    let start = Instant::now();
    let mut runtime = Runtime::load(&dir, backend.as_ref(), &LoadOptions::default())?;
    let mut session = runtime.session(&SessionOptions::default())?;
    let setting = Setting {
        model: bundle.model.name,
        bundle: dir.display().to_string(),
        backend: backend.name(),
        ctx: session.ctx(),
        load_seconds: start.elapsed().as_secs_f64(),
    };
    let has_text = tokenizer.is_some();
    let mut generation = Generation::begin(&runtime, &mut session, tokenizer, request)?;
    let mut answer = Answer::new(context, !args.json, has_text);
    answer.take(&mut generation, &mut runtime, &mut session)?;

    let report = Report::new(setting, &generation, answer.text());
    if args.json {
        context.ui.json(&report)?;
    } else {
        context.ui.note(report.line());
    }
    match generation.finish_reason() {
        Some(FinishReason::Cancelled) => Err(Failure::Interrupted(String::new())),
        _ => Ok(()),
    }
}

/// What runs.
enum Source {
    Bundle(PathBuf),
    Model(ModelSource, ConvertOptions),
}

impl Source {
    fn resolve(args: &RunArgs) -> Result<Self, Failure> {
        if let Some(dir) = &args.bundle {
            Bundle::open(dir)?;
            return Ok(Source::Bundle(dir.clone()));
        }
        let model = args.model.as_deref().expect("clap requires a bundle or a model");
        let options = conversion::options(&args.conversion)?;
        Ok(Source::Model(ModelSource::resolve(model)?, options))
    }

    /// The bundle that was named, or the converted checkpoint.
    fn bundle_dir(&self, prompt: &Prompt, context: &Context) -> Result<PathBuf, Failure> {
        match self {
            Source::Bundle(dir) => Ok(dir.clone()),
            Source::Model(model, options) => {
                let checkpoint = model.checkpoint(context)?;
                prompt.check_readable(&checkpoint.dir, &checkpoint.name)?;
                converted::bundle_of(&checkpoint, options, context)
            }
        }
    }
}

/// The bundle's tokenizer, if it has one.
fn open_tokenizer(dir: &Path) -> Result<Option<Arc<Tokenizer>>, Failure> {
    match Tokenizer::open(dir) {
        Ok(tokenizer) => Ok(Some(Arc::new(tokenizer))),
        Err(TokenizerError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Refuses a prompt that does not fit before the weights are loaded.
fn check_length(tokens: usize, bundle: &Bundle) -> Result<(), RequestError> {
    match bundle.contexts().last() {
        Some(&ctx) if tokens > ctx => Err(RequestError::PromptTooLong { tokens, ctx }),
        _ => Ok(()),
    }
}
