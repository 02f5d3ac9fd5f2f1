//! `lone eval`: an exam taken, and its marks.

mod report;

use lone_bundle::Bundle;
use lone_engine::{EngineError, LoadOptions, RequestError, Runtime};
use lone_lfm::Checkpoint;
use lone_verify::{
    Amount, BundleExaminee, CheckpointExaminee, Exam, ExamError, Examinee, Examiner, Marks, Question,
    Selection,
};

use super::Context;
use crate::args::EvalArgs;
use crate::backend;
use crate::bundle::BundleSource;
use crate::failure::Failure;
use crate::source::ModelSource;
use report::{Mistake, Report};

/// Has the model in `args` take the exam.
///
/// # Errors
/// If exam or model cannot be used, or on Ctrl-C. Wrong answers are no errors.
pub(crate) fn execute(args: &EvalArgs, context: &Context) -> Result<(), Failure> {
    let exam = Exam::open(&args.exam)?;
    let questions = exam.select(&selection(args))?;
    let report = if args.reference {
        of_checkpoint(args, &questions, context)?
    } else {
        of_bundle(args, &questions, context)?
    };
    if args.json {
        context.ui.json(&report)
    } else {
        report.print(exam.transformers_f32.as_ref(), &context.ui)
    }
}

fn selection(args: &EvalArgs) -> Selection {
    let amount = match (args.fraction, args.limit) {
        (Some(fraction), _) => Amount::Fraction(fraction),
        (None, Some(limit)) => Amount::Limit(limit),
        (None, None) => Amount::All,
    };
    Selection { tasks: args.tasks.clone(), amount, seed: args.seed }
}

fn of_bundle(args: &EvalArgs, questions: &[&Question], context: &Context) -> Result<Report, Failure> {
    let source = BundleSource::resolve(&args.source, &args.conversion)?;
    let backend = backend::choose(&args.engine, context)?;
    context.watch_for_interrupts();
    // A checkpoint that cannot be asked need not be converted.
    let dir =
        source.directory(context, |checkpoint| Ok(Examiner::open(&checkpoint.dir, vec![]).map(drop)?))?;
    let description = Bundle::open(&dir)?;
    let examiner = Examiner::open(&dir, description.model.eos_token_ids.clone())?;
    check(questions, &examiner, description.contexts().last().copied())?;
    let mut runtime = Runtime::load(&dir, backend.as_ref(), &LoadOptions::default())?;
    let mut examinee = BundleExaminee::new(&mut runtime)?;
    let (marks, mistakes) = take(questions, &examiner, &mut examinee, context)?;
    Ok(Report::new(description.model.name, backend.name(), &marks, mistakes))
}

fn of_checkpoint(args: &EvalArgs, questions: &[&Question], context: &Context) -> Result<Report, Failure> {
    let model = args.source.model.as_deref().expect("clap requires a bundle or a model, and here no bundle");
    context.watch_for_interrupts();
    let source = ModelSource::resolve(model)?.checkpoint(context)?;
    let checkpoint = Checkpoint::open(&source.dir)?;
    let examiner = Examiner::open(&source.dir, checkpoint.config().eos_token_ids.clone())?;
    check(questions, &examiner, None)?;
    let mut examinee = CheckpointExaminee::new(&checkpoint);
    let (marks, mistakes) = take(questions, &examiner, &mut examinee, context)?;
    Ok(Report::new(source.name, "the checkpoint in f32", &marks, mistakes))
}

/// Refuses questions that cannot be put, or that a context of `ctx` tokens does not hold, before the first is put.
fn check(questions: &[&Question], examiner: &Examiner, ctx: Option<usize>) -> Result<(), Failure> {
    for (number, question) in (1..).zip(questions) {
        let prompt = examiner.prompt(question).and_then(|prompt| match ctx {
            Some(ctx) if prompt.len() > ctx => {
                let error = RequestError::PromptTooLong { tokens: prompt.len(), ctx };
                Err(EngineError::from(error).into())
            }
            _ => Ok(prompt),
        });
        prompt.map_err(|error: ExamError| error.of_question(number, question))?;
    }
    Ok(())
}

/// Puts the questions one after the other.
fn take(
    questions: &[&Question],
    examiner: &Examiner,
    examinee: &mut dyn Examinee,
    context: &Context,
) -> Result<(Marks, Vec<Mistake>), Failure> {
    let mut progress = context.ui.count("asking", "questions", questions.len());
    let (mut marks, mut mistakes) = (Marks::default(), Vec::new());
    for (number, question) in (1..).zip(questions) {
        let answer = examiner
            .ask(question, examinee, &context.interrupt)
            .map_err(|error| error.of_question(number, question))?;
        marks.count(&question.task, answer.is_right);
        if !answer.is_right {
            mistakes.push(Mistake::new(question, answer));
        }
        progress.advance(1);
    }
    Ok((marks, mistakes))
}
