//! `lone run`: one prompt, one answer.

mod report;

use std::time::Instant;

use lone_bundle::Bundle;
use lone_engine::{FinishReason, Generation, Request, Runtime};

use super::Context;
use super::answer::Answer;
use crate::args::RunArgs;
use crate::bundle::BundleSource;
use crate::energy::Metering;
use crate::failure::Failure;
use crate::prompt::Prompt;
use crate::speculation;
use crate::{backend, bundle, placement, sampling};
use report::{Report, Setting};

/// Answers the prompt in `args`.
///
/// # Errors
/// As the prompt, the model and the backend have it; [`Failure::Interrupted`] after Ctrl-C, when what there was of
/// the answer has been shown.
pub(crate) fn execute(args: &RunArgs, context: &Context) -> Result<(), Failure> {
    // What can be refused at once comes first, then what the user has to type, then what takes long.
    let speculation = speculation::resolve(&args.setup.speculation)?;
    let mut source = BundleSource::resolve(&args.source, &args.setup.conversion)?;
    speculation::prepare(speculation, &mut source)?;
    let backend = backend::choose(&args.setup.engine, context)?;
    let prompt = Prompt::read(&args.prompt, &context.ui)?;
    context.watch_for_interrupts();
    let dir = source
        .directory(context, |checkpoint| Ok(prompt.check_readable(&checkpoint.dir, &checkpoint.name)?))?;

    let bundle = Bundle::open(&dir)?;
    let tokenizer = bundle::tokenizer(&dir)?;
    let tokens = prompt.tokens(tokenizer.as_deref(), &dir, &bundle.model)?;
    let options = args.setup.session.options();
    // Refused before the weights are loaded.
    options.check_length(&bundle, tokens.len())?;
    let request = Request {
        prompt: tokens,
        sampling: sampling::resolve(&args.sampling, &bundle.model.sampling),
        max_new_tokens: args.max_new_tokens,
        stop_tokens: bundle.model.eos_token_ids.clone(),
        stop: args.stop.clone(),
        ..Request::default()
    };

    placement::warn(&bundle, backend.name(), args.setup.engine.units, &context.ui);
    let mut metering = Metering::open(&context.environment);
    let start = Instant::now();
    let mut runtime = Runtime::load(&dir, backend.as_ref(), &args.setup.session.load_options())?;
    let mut session = runtime.session(&options)?;
    session.set_proposer(&runtime, speculation.map(|speculation| speculation.proposers().make()))?;
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
    answer.take(&mut generation, &mut runtime, &mut session, &mut metering)?;

    let report = Report::new(setting, &generation, answer.text(), speculation.is_some(), metering.phases());
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
