//! `lone chat`: a conversation, turn by turn.

mod command;
mod editor;
mod input;
mod report;
mod save;
mod settings;
mod talk;
mod unfinished;

use std::path::Path;

use lone_bundle::Bundle;
use lone_engine::{Dialogue, Runtime};
use lone_lfm::ChatTemplate;

use super::Context;
use crate::args::ChatArgs;
use crate::bundle::BundleSource;
use crate::energy::Metering;
use crate::failure::{Failure, UserError};
use crate::quantity::counted;
use crate::speculation::{self, Speculation};
use crate::{backend, bundle, placement};
use command::{Command, Entry};
use input::Input;
use report::Totals;
use settings::Settings;
use talk::Talk;

/// Holds the conversation that `args` ask for.
///
/// # Errors
/// As the model and the backend have it; where nobody sits in front, also if a turn or a command was refused.
pub(crate) fn execute(args: &ChatArgs, context: &Context) -> Result<(), Failure> {
    let speculation = speculation::resolve(&args.setup.speculation)?;
    let mut source = BundleSource::resolve(&args.source, &args.setup.conversion)?;
    speculation::prepare(speculation, &mut source)?;
    let backend = backend::choose(&args.setup.engine, context)?;
    context.watch_for_interrupts();
    let dir = source.directory(context, |model| Ok(check_readable(&model.dir, &model.name)?))?;
    let bundle = Bundle::open(&dir)?;
    let tokenizer = bundle::tokenizer(&dir)?.ok_or_else(|| no_tokenizer(&bundle.model.name))?;
    let template = ChatTemplate::open(&dir)?;
    let settings = Settings::new(&args.settings, bundle.model.sampling.clone());
    let mut input = Input::open(context);
    placement::warn(&bundle, backend.name(), args.setup.engine.units, &context.ui);
    let metering = Metering::open(&context.environment);
    let runtime = Runtime::load(&dir, backend.as_ref(), &args.setup.session.load_options())?;
    let options = args.setup.session.options();
    let mut talk = Talk {
        session: runtime.session(&options)?,
        options,
        runtime,
        proposers: speculation.map(Speculation::proposers),
        tokenizer,
        template,
        dialogue: Dialogue::new(args.system.clone()),
        settings,
        totals: Totals::default(),
        metering,
        is_json: args.json,
        is_interactive: input.is_interactive(),
        context,
    };
    talk.begin()?;
    converse(&mut talk, &mut input, context)
}

/// Takes what comes in until the end, or until something fails that is not the user's to mend.
fn converse(talk: &mut Talk<'_>, input: &mut Input<'_>, context: &Context) -> Result<(), Failure> {
    let mut refused = 0;
    while let Some(line) = input.next()? {
        let outcome = match line.and_then(|line| command::parse(&line)) {
            Ok(None) => continue,
            Ok(Some(Entry::Command(Command::Exit))) => break,
            Ok(Some(Entry::Command(command))) => talk.obey(command),
            Ok(Some(Entry::Say(text))) => talk.say(text),
            Err(error) => Err(error.into()),
        };
        match outcome {
            Err(Failure::User(error)) => {
                context.ui.refuse(&error);
                refused += 1;
            }
            other => other?,
        }
    }
    if refused > 0 && !input.is_interactive() {
        return Err(Failure::user(format_args!("{} refused, as said above", counted(refused, "line"))));
    }
    Ok(())
}

/// Refuses a model without a tokenizer before it is converted.
fn check_readable(dir: &Path, name: &str) -> Result<(), UserError> {
    if dir.join("tokenizer.json").is_file() { Ok(()) } else { Err(no_tokenizer(name)) }
}

fn no_tokenizer(model: &str) -> UserError {
    UserError::new(format_args!("{model} has no tokenizer, so nobody can talk with it"))
        .with_hint("`lone run --prompt-ids 1,5,7` gives it tokens")
}
