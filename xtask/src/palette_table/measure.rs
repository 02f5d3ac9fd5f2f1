//! Conversions, conversations and comparisons.

use std::num::NonZeroUsize;
use std::path::Path;

use lone_bundle::Role;
use lone_convert::{Conversion, convert};
use lone_cpu::{CpuBackend, CpuOptions};
use lone_engine::{LoadOptions, Runtime, SessionOptions};
use lone_lfm::{ChatTemplate, Checkpoint, Conversation, Reference, Tokenizer};
use lone_verify::{BundleExaminee, Exam, Examiner, Question, cosine};

use super::{Arm, Report, Row};

/// Measures some arms of the checkpoint in `model`, with every `step`th question of its exam.
///
/// # Errors
/// If the checkpoint cannot be read, converted or run, or has no exam.
pub fn measure(model: &Path, step: usize, arms: &[Arm]) -> anyhow::Result<Report> {
    let checkpoint = Checkpoint::open(model)?;
    let questions: Vec<Question> =
        Exam::open(&model.join("exam.json"))?.questions.into_iter().step_by(step).collect();
    let mut candidates = Vec::new();
    for &arm in arms {
        candidates.push(Candidate::new(&checkpoint, arm)?);
    }
    let (template, tokenizer) = (ChatTemplate::open(model)?, Tokenizer::open(model)?);
    for question in &questions {
        let conversation =
            Conversation { tools: question.tools.as_deref(), ..Conversation::new(&question.messages) };
        let tokens = tokenizer.encode(&(template.render(&conversation)? + &question.answer))?;
        let expected = logits(&checkpoint, &tokens)?;
        for candidate in &mut candidates {
            candidate.compare(&tokens, &expected)?;
        }
    }
    let positions = candidates.first().map_or(0, |candidate| candidate.positions);
    let mut rows = Vec::new();
    for candidate in candidates {
        rows.push(candidate.finish(model, &questions)?);
    }
    Ok(Report { model: model.display().to_string(), positions, rows })
}

/// The checkpoint's own, for every position.
fn logits(checkpoint: &Checkpoint, tokens: &[u32]) -> anyhow::Result<Vec<Vec<f32>>> {
    let reference = Reference::new(checkpoint);
    let hidden = reference.hidden(tokens, |_, _| {})?;
    let mut rows = Vec::new();
    reference.logits(&hidden, |_, logits| rows.push(logits.to_vec()));
    Ok(rows)
}

/// A bundle being compared.
struct Candidate {
    arm: Arm,
    bytes: u64,
    stop_tokens: Vec<u32>,
    runtime: Runtime,
    positions: usize,
    sum: f64,
    worst: f64,
    /// Removed when the bundle is not needed any more.
    _dir: tempfile::TempDir,
}

impl Candidate {
    fn new(checkpoint: &Checkpoint, arm: Arm) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("bundle");
        let Conversion { bundle, .. } = convert(checkpoint, &path, &arm.options(), &mut ())?;
        let backend = CpuBackend::new(CpuOptions { threads: NonZeroUsize::new(2), ..CpuOptions::default() });
        let runtime = Runtime::load(&path, &backend, &LoadOptions::default())?;
        let bytes = bundle.files.iter().map(|file| file.bytes).sum();
        let stop_tokens = bundle.model.eos_token_ids;
        Ok(Candidate { arm, bytes, stop_tokens, runtime, positions: 0, sum: 0.0, worst: 0.0, _dir: dir })
    }

    fn compare(&mut self, tokens: &[u32], expected: &[Vec<f32>]) -> anyhow::Result<()> {
        let mut session = self.runtime.session(&SessionOptions::default())?;
        session.observe(&mut self.runtime, Some(Role::Verify), tokens, |observed| {
            let distance = 1.0 - cosine(observed.logits, &expected[observed.position]);
            self.positions += 1;
            self.sum += distance;
            self.worst = self.worst.max(distance);
        })?;
        Ok(())
    }

    fn finish(mut self, model: &Path, questions: &[Question]) -> anyhow::Result<Row> {
        let examiner = Examiner::open(model, self.stop_tokens)?;
        let mut examinee = BundleExaminee::new(&mut self.runtime)?;
        let mut right = 0;
        for question in questions {
            right += usize::from(examiner.ask(question, &mut examinee, &())?.is_right);
        }
        Ok(Row {
            arm: self.arm,
            bytes: self.bytes,
            mean: self.sum / self.positions as f64,
            worst: self.worst,
            score: right as f64 / questions.len() as f64,
        })
    }
}
