//! `lone verify`: a bundle compared with its checkpoint.

mod answer;
mod contest;
mod plot;
mod ranges;
mod report;

use super::{Context, save};
use crate::args::VerifyArgs;
use crate::backend;
use crate::failure::Failure;
use contest::Contest;
use report::Report;

/// Compares what `args` names.
///
/// # Errors
/// If the bundle is not as it was written, cannot be run, or is less like the reference than it must be: then the
/// report has been printed.
pub(crate) fn execute(args: &VerifyArgs, context: &Context) -> Result<(), Failure> {
    // What can be refused without the model comes before fetching and converting it.
    let backend = backend::choose(&args.engine, context)?;
    let contest = Contest::prepare(args, context)?;
    let outcome = contest.run(backend.as_ref(), context)?;
    let report = Report::new(args, &contest, backend.name(), &outcome);
    if args.json {
        context.ui.json(&report)?;
    } else {
        report.print(&context.ui)?;
    }
    if let Some(path) = &args.plot {
        save(path, &plot::drawing(&report)?)?;
        if !args.json {
            context.ui.note(format_args!("drawn: {}", path.display()));
        }
    }
    report.verdict()
}
