//! `lone convert`: a checkpoint becomes a bundle.

use std::path::PathBuf;

use lone_convert::ConvertOptions;
use serde::Serialize;

use super::Context;
use crate::args::ConvertArgs;
use crate::conversion::{self, Converted};
use crate::failure::Failure;
use crate::quantity::{Bytes, Seconds, rate};
use crate::source::ModelSource;

/// What was written, for `--json`.
#[derive(Debug, Serialize)]
struct Summary {
    bundle: PathBuf,
    model: String,
    bytes: u64,
    seconds: f64,
    bytes_per_second: f64,
    packages: usize,
    warnings: Vec<String>,
}

/// Converts what `args` names.
///
/// # Errors
/// If the checkpoint or the target is refused, or on Ctrl-C; nothing is left behind then.
pub(crate) fn execute(args: &ConvertArgs, context: &Context) -> Result<(), Failure> {
    context.watch_for_interrupts();
    let options = ConvertOptions { force: args.force, ..conversion::options(&args.conversion)? };
    let source = ModelSource::resolve(&args.model)?;
    // The converter refuses this too, but a download may come before it.
    lone_convert::check_target(&args.out, args.force)?;
    let source = source.checkpoint(context)?;
    let Converted { bundle, notes, bytes, seconds } =
        conversion::convert(&source, &args.out, &options, !args.no_plan, context)?;
    let summary = Summary {
        bundle: args.out.clone(),
        packages: bundle.graphs.len(),
        model: bundle.model.name,
        bytes,
        seconds,
        bytes_per_second: rate(bytes as f64, seconds),
        warnings: notes,
    };
    if args.json {
        return context.ui.json(&summary);
    }
    context.ui.line(format_args!(
        "{}: {} in {}, {}/s",
        args.out.display(),
        Bytes(bytes),
        Seconds(seconds),
        Bytes(summary.bytes_per_second as u64)
    ))?;
    context
        .ui
        .note(format_args!("try it: {}", next_command(args, source.dir.join("tokenizer.json").is_file())));
    Ok(())
}

fn next_command(args: &ConvertArgs, has_tokenizer: bool) -> String {
    let prompt = if has_tokenizer { "--chat --prompt \"Hello\"" } else { "--prompt-ids 1,2,3" };
    format!("lone run --bundle {} {prompt}", args.out.display())
}
