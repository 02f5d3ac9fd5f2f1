//! The two sides of a comparison: who they are, and what each makes of the tokens.

use std::path::PathBuf;
use std::sync::Arc;

use lone_bundle::{Bundle, ModelFacts, Role};
use lone_engine::{LoadOptions, Runtime};
use lone_lfm::{Checkpoint, Tokenizer};
use lone_mil::{Backend, Interpreter, Reference};
use lone_verify::{Candidate, Drift, RangeWatch, Ranges, Record, Transformers, Watch};

use super::report::PassReport;
use crate::args::{FunctionChoice, ReferenceChoice, VerifyArgs};
use crate::commands::Context;
use crate::failure::{Failure, UserError};
use crate::interrupt::Interrupt;
use crate::prompt::Prompt;
use crate::quantity::counted;
use crate::source::{CheckpointDir, ModelSource};
use crate::ui::Progress;
use crate::{bundle, conversion, converted};

/// Everything that is known before anything runs.
pub(super) struct Contest {
    pub(super) dir: PathBuf,
    pub(super) bundle: Bundle,
    pub(super) tokenizer: Option<Arc<Tokenizer>>,
    pub(super) role: Role,
    rival: Rival,
    tokens: Vec<u32>,
    max_new_tokens: usize,
    with_ranges: bool,
}

/// What the bundle is compared with.
enum Rival {
    Own(Box<Checkpoint>),
    Transformers { transformers: Transformers, checkpoint: PathBuf },
    Recorded(Record),
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) reference: Record,
    /// By the passes that were least like the reference.
    pub(super) candidate: Record,
    /// How far those two are apart.
    pub(super) drift: Drift,
    /// How alike the logits are by each size of pass, the smallest first.
    pub(super) passes: Vec<PassReport>,
    /// Length of what both were given; what follows is the candidate's answer.
    pub(super) prompt_tokens: usize,
    /// The candidate's answer, if one was asked for.
    pub(super) answer: Option<Vec<u32>>,
    pub(super) ranges: Option<Ranges>,
}

impl Contest {
    /// Opens what `args` names, and compares the bundle's files with their hashes.
    pub(super) fn prepare(args: &VerifyArgs, context: &Context) -> Result<Self, Failure> {
        // What can be refused at once comes first, then what the user has to type, then what takes long.
        check_flags(args)?;
        let transformers = transformers(&args.reference, context)?;
        let model = args.target.model.as_deref().map(ModelSource::resolve).transpose()?;
        let options = conversion::options(&args.conversion)?;
        let prompt = match &args.reference {
            ReferenceChoice::File(_) => None,
            ReferenceChoice::Own | ReferenceChoice::Transformers => {
                Some(Prompt::read(&args.prompt, &context.ui)?)
            }
        };
        context.watch_for_interrupts();
        let checkpoint = model.map(|model| model.checkpoint(context)).transpose()?;
        let dir = match (&args.target.bundle, &checkpoint) {
            (Some(dir), _) => dir.clone(),
            (None, Some(checkpoint)) => {
                if let Some(prompt) = &prompt {
                    prompt.check_readable(&checkpoint.dir, &checkpoint.name)?;
                }
                converted::bundle_of(checkpoint, &options, context)?
            }
            (None, None) => unreachable!("clap requires one of the two"),
        };
        let bundle = Bundle::open_description(&dir)?;
        let damaged = bundle::damaged_files(&bundle, &dir, &context.ui)?;
        if !damaged.is_empty() {
            let names = damaged.iter().map(|file| file.path.as_str());
            return Err(bundle::not_as_written(&dir.display().to_string(), names).into());
        }
        let role = role(args.function, &bundle)?;
        let tokenizer = bundle::tokenizer(&dir)?;
        let rival = Rival::new(&args.reference, checkpoint, transformers, &bundle)?;
        let tokens = match (&rival, prompt) {
            (Rival::Recorded(record), _) => record.tokens.clone(),
            (_, prompt) => {
                let prompt = prompt.expect("only records do without");
                prompt.tokens(tokenizer.as_deref(), &dir, &bundle.model)?
            }
        };
        let (max_new_tokens, with_ranges) = (args.max_new_tokens, args.ranges);
        Ok(Contest { dir, bundle, tokenizer, role, rival, tokens, max_new_tokens, with_ranges })
    }

    /// Has both sides read the tokens, the bundle on `backend` by passes of every size.
    pub(super) fn run(&self, backend: &dyn Backend, context: &Context) -> Result<Outcome, Failure> {
        let mut runtime = self.load(backend)?;
        let sizes = self.pass_sizes(&runtime);
        let (mut candidate, answer) = self.candidate(&mut runtime, context)?;
        if !matches!(self.rival, Rival::Recorded(_)) {
            let tokens = counted(candidate.tokens.len(), "token");
            context.ui.note(format_args!("the reference reads {tokens}"));
        }
        let reference = self.rival.record(&candidate.tokens, &self.bundle, &context.interrupt)?;
        let mut drift = Drift::between(&reference, &candidate);
        let mut passes = vec![PassReport { tokens: sizes[0], cosine: drift.logits }];
        for &size in &sizes[1..] {
            let other = self.reading(&mut runtime, size, &reference.tokens, context)?;
            let other_drift = Drift::between(&reference, &other);
            passes.push(PassReport { tokens: size, cosine: other_drift.logits });
            if other_drift.logits.mean < drift.logits.mean {
                (candidate, drift) = (other, other_drift);
            }
        }
        let ranges = if self.with_ranges { Some(self.ranges(&candidate.tokens, context)?) } else { None };
        let (prompt_tokens, answer) = (self.tokens.len(), (self.max_new_tokens > 0).then_some(answer));
        Ok(Outcome { reference, candidate, drift, passes, prompt_tokens, answer, ranges })
    }

    /// What the bundle makes of the prompt by the smallest passes, and how it goes on.
    fn candidate(&self, runtime: &mut Runtime, context: &Context) -> Result<(Record, Vec<u32>), Failure> {
        let mut candidate = Candidate::new(runtime, self.role)?;
        let most_tokens = self.tokens.len().saturating_add(self.max_new_tokens).min(self.ctx());
        let mut reader = Reader::new("reading", most_tokens, context);
        candidate.read(&self.tokens, &|position| self.rival.has(position), &mut reader)?;
        let stop_tokens = &self.bundle.model.eos_token_ids;
        let answer = candidate.answer(self.max_new_tokens, stop_tokens, &mut reader)?;
        Ok((candidate.into_record(), answer))
    }

    /// What the bundle makes of `tokens` by passes of `size`.
    fn reading(
        &self,
        runtime: &mut Runtime,
        size: usize,
        tokens: &[u32],
        context: &Context,
    ) -> Result<Record, Failure> {
        let mut reader = Reader::new(&format!("reading by {size}"), tokens.len(), context);
        let mut candidate = Candidate::new(runtime, self.role)?.by_passes_of(size);
        candidate.read(tokens, &|position| self.rival.has(position), &mut reader)?;
        Ok(candidate.into_record())
    }

    /// Tokens a pass of each shape that is tested, the smallest first; there is one, since the role has a function.
    fn pass_sizes(&self, runtime: &Runtime) -> Vec<usize> {
        runtime.shapes().filter(|shape| shape.0 == self.role).map(|(_, tokens, _)| tokens).collect()
    }

    /// Tokens that both can read, answer included.
    fn ctx(&self) -> usize {
        self.bundle.contexts().last().copied().unwrap_or_default()
    }

    fn load(&self, backend: &dyn Backend) -> Result<Runtime, Failure> {
        let options = LoadOptions {
            roles: vec![self.role],
            contexts: vec![self.ctx()],
            keep_layer_outputs: true,
            ..LoadOptions::default()
        };
        Ok(Runtime::load(&self.dir, backend, &options)?)
    }

    /// Ranges of every value while the programs, interpreted, read `tokens`.
    fn ranges(&self, tokens: &[u32], context: &Context) -> Result<Ranges, Failure> {
        let interpreter = Interpreter::<Reference>::new();
        let watch = RangeWatch::new(&interpreter);
        let mut runtime = self.load(&watch)?;
        let sizes = self.pass_sizes(&runtime);
        let mut reader = Reader::new("looking at ranges", sizes.len() * tokens.len(), context);
        for size in sizes {
            let mut candidate = Candidate::new(&mut runtime, self.role)?.by_passes_of(size);
            candidate.read(tokens, &|_| false, &mut reader)?;
        }
        Ok(watch.ranges())
    }

    /// Who the bundle is compared with, in words.
    pub(super) fn rival(&self) -> &'static str {
        match self.rival {
            Rival::Own(_) => "the checkpoint in f32",
            Rival::Transformers { .. } => "the checkpoint in transformers",
            Rival::Recorded(_) => "a record",
        }
    }
}

impl Rival {
    fn new(
        reference: &ReferenceChoice,
        checkpoint: Option<CheckpointDir>,
        transformers: Option<Transformers>,
        bundle: &Bundle,
    ) -> Result<Self, Failure> {
        let layer_count = bundle.model.layers.len();
        if let ReferenceChoice::File(path) = reference {
            let record = Record::open(path, layer_count)?;
            record.check(&bundle.model)?;
            return Ok(Rival::Recorded(record));
        }
        let dir = checkpoint.expect("it has been checked that there is one").dir;
        let checkpoint = Checkpoint::open(&dir)?;
        check_same_model(&bundle.model, &checkpoint)?;
        Ok(match transformers {
            Some(transformers) => Rival::Transformers { transformers, checkpoint: dir },
            None => Rival::Own(Box::new(checkpoint)),
        })
    }

    /// Whether it has something to say about `position`.
    fn has(&self, position: usize) -> bool {
        match self {
            Rival::Own(_) | Rival::Transformers { .. } => true,
            Rival::Recorded(record) => record.positions.binary_search(&position).is_ok(),
        }
    }

    /// What it makes of `tokens`.
    fn record(&self, tokens: &[u32], bundle: &Bundle, watch: &dyn Watch) -> Result<Record, Failure> {
        let record = match self {
            Rival::Own(checkpoint) => Record::of_checkpoint(checkpoint, tokens, watch)?,
            Rival::Transformers { transformers, checkpoint } => {
                transformers.record(checkpoint, tokens, bundle.model.layers.len(), watch)?
            }
            Rival::Recorded(record) => record.clone(),
        };
        record.check(&bundle.model)?;
        Ok(record)
    }
}

/// Refuses flags that make no sense with the reference that was chosen.
fn check_flags(args: &VerifyArgs) -> Result<(), UserError> {
    let ReferenceChoice::File(path) = &args.reference else {
        if args.target.model.is_some() {
            return Ok(());
        }
        return Err(UserError::new("the reference is the checkpoint, and none is given")
            .with_hint("--model MODEL, or --reference FILE"));
    };
    let path = path.display();
    if args.prompt.is_given() {
        return Err(UserError::new(format_args!("the tokens come from {path}"))
            .with_hint("leave the prompt out, or leave --reference out"));
    }
    if args.max_new_tokens > 0 {
        return Err(UserError::new(format_args!("{path} does not say how the reference would go on"))
            .with_hint("leave --max-new-tokens out, or leave --reference out"));
    }
    Ok(())
}

/// Refuses a checkpoint of other dimensions than the bundle's.
fn check_same_model(facts: &ModelFacts, checkpoint: &Checkpoint) -> Result<(), UserError> {
    let config = checkpoint.config();
    let dimensions = [
        ("layers", facts.layers.len(), config.layers.len()),
        ("hidden size", facts.hidden_size, config.hidden_size),
        ("vocabulary", facts.vocab_size, config.vocab_size),
    ];
    match dimensions.iter().find(|(_, expected, found)| expected != found) {
        None => Ok(()),
        Some((what, expected, found)) => Err(UserError::new(format_args!(
            "the bundle was made of another checkpoint than {}: {what} {expected}, and not {found}",
            checkpoint.dir().display()
        ))),
    }
}

/// The Python that transformers is asked in, if it is to be asked.
fn transformers(reference: &ReferenceChoice, context: &Context) -> Result<Option<Transformers>, Failure> {
    if *reference != ReferenceChoice::Transformers {
        return Ok(None);
    }
    let python = context.environment.get("LONE_PYTHON").map_or_else(|| "python3".into(), Into::into);
    Ok(Some(Transformers::find(python)?))
}

/// The role of that name, which the bundle must have.
fn role(choice: FunctionChoice, bundle: &Bundle) -> Result<Role, UserError> {
    let (role, hint) = match choice {
        FunctionChoice::Decode => (Role::Decode, "--function prefill"),
        FunctionChoice::Prefill => (Role::Prefill, "--function decode"),
        FunctionChoice::Verify => (Role::Verify, "convert with --spec-drafts 16"),
    };
    let mut functions = bundle.chunks().flat_map(|graph| &graph.functions);
    if functions.any(|function| function.role == role) {
        return Ok(role);
    }
    let name = format!("{role:?}").to_lowercase();
    Err(UserError::new(format_args!("the bundle has no {name} functions")).with_hint(hint))
}

/// Shows how far a reading is, and ends it on Ctrl-C.
struct Reader<'a> {
    progress: Progress<'a>,
    interrupt: &'a Interrupt,
}

impl<'a> Reader<'a> {
    fn new(what: &str, tokens: usize, context: &'a Context) -> Self {
        Reader { progress: context.ui.count(what, "tokens", tokens), interrupt: &context.interrupt }
    }
}

impl Watch for Reader<'_> {
    fn advance(&mut self, tokens: usize) {
        self.progress.advance(tokens as u64);
    }

    fn is_cancelled(&self) -> bool {
        self.interrupt.is_raised()
    }
}
