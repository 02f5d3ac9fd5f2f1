//! `lone inspect`: what a bundle, a checkpoint or a package holds.
//!
//! Each kind of thing becomes a report first; the report is printed as text or as JSON, so both say the same.

mod bundle;
mod checkpoint;
mod package;
mod placement;

use serde::Serialize;

use super::Context;
use crate::args::InspectArgs;
use crate::failure::Failure;
use crate::source::ModelSource;
use crate::ui::Ui;

/// Something that can be shown to people and to programs.
trait Report: Serialize {
    fn print(&self, ui: &Ui) -> Result<(), Failure>;
}

/// Shows what `args` names.
///
/// # Errors
/// If it cannot be read, is damaged, or does not pass `--check`.
pub(crate) fn execute(args: &InspectArgs, context: &Context) -> Result<(), Failure> {
    let target = &args.target;
    if let Some(dir) = &target.bundle {
        let report = bundle::BundleReport::of(dir, args.check, &context.ui)?;
        show(&report, args.json, &context.ui)?;
        return report.verdict();
    }
    if let Some(dir) = &target.package {
        if args.text {
            return package::print_text(dir, &context.ui);
        }
        return show(&package::PackageReport::of(dir)?, args.json, &context.ui);
    }
    let model = target.model.as_deref().expect("clap requires one of the three");
    context.watch_for_interrupts();
    let checkpoint = ModelSource::resolve(model)?.checkpoint(context)?;
    show(&checkpoint::CheckpointReport::of(&checkpoint, &context.ui)?, args.json, &context.ui)
}

fn show(report: &impl Report, json: bool, ui: &Ui) -> Result<(), Failure> {
    if json { ui.json(report) } else { report.print(ui) }
}
