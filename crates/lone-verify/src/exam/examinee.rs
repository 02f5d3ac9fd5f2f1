//! Who answers: a bundle on a backend, or the checkpoint itself in f32.

use lone_engine::{Generation, Request, Runtime, Session, SessionOptions};
use lone_lfm::{Checkpoint, Reference};

use super::ExamError;
use crate::Watch;
use crate::ranking::argmax;

/// A question as tokens.
#[derive(Debug, Clone, Copy)]
pub struct Paper<'a> {
    /// The conversation, up to where the answer begins; at least one token.
    pub prompt: &'a [u32],
    /// The right answer, as the tokenizer would write it: a guess to check, not the only way to write it.
    pub expected: &'a [u32],
    /// A longer answer is wrong.
    pub most_tokens: usize,
    /// Any of these ends the answer.
    pub stop_tokens: &'a [u32],
}

/// Answers greedily.
pub trait Examinee {
    /// The likeliest tokens one after the other, up to and with one that ends the answer, or as many as may be.
    ///
    /// # Errors
    /// As the model has it, and [`ExamError::Cancelled`].
    fn answer(&mut self, paper: &Paper<'_>, watch: &dyn Watch) -> Result<Vec<u32>, ExamError>;
}

/// A loaded bundle.
pub struct BundleExaminee<'a> {
    runtime: &'a mut Runtime,
    session: Session,
}

impl<'a> BundleExaminee<'a> {
    /// With a session of its own.
    ///
    /// # Errors
    /// [`ExamError::Engine`] if there is no memory for its caches.
    pub fn new(runtime: &'a mut Runtime) -> Result<Self, ExamError> {
        let session = runtime.session(&SessionOptions::default())?;
        Ok(BundleExaminee { runtime, session })
    }
}

impl Examinee for BundleExaminee<'_> {
    fn answer(&mut self, paper: &Paper<'_>, watch: &dyn Watch) -> Result<Vec<u32>, ExamError> {
        let request = Request {
            prompt: paper.prompt.to_vec(),
            max_new_tokens: paper.most_tokens,
            stop_tokens: paper.stop_tokens.to_vec(),
            ..Request::default()
        };
        let (runtime, session) = (&mut *self.runtime, &mut self.session);
        let mut generation =
            Generation::begin(runtime, session, None, request).map_err(lone_engine::EngineError::from)?;
        while generation.finish_reason().is_none() {
            if watch.is_cancelled() {
                return Err(ExamError::Cancelled);
            }
            generation.step(runtime, session, &mut |_| ())?;
        }
        Ok(generation.token_ids().to_vec())
    }
}

/// A checkpoint, in f32 and without caches.
pub struct CheckpointExaminee<'a> {
    checkpoint: &'a Checkpoint,
}

impl<'a> CheckpointExaminee<'a> {
    /// Of this checkpoint.
    pub fn new(checkpoint: &'a Checkpoint) -> Self {
        CheckpointExaminee { checkpoint }
    }

    /// The likeliest token after each position from `first` on.
    fn likeliest_from(&self, first: usize, tokens: &[u32]) -> Result<Vec<u32>, ExamError> {
        let reference = Reference::new(self.checkpoint);
        let hidden = reference.hidden(tokens, |_, _| {})?;
        let mut likeliest = Vec::new();
        let rows = &hidden[first * self.checkpoint.config().hidden_size..];
        reference.logits(rows, |_, logits| likeliest.push(argmax(logits).id));
        Ok(likeliest)
    }
}

impl Examinee for CheckpointExaminee<'_> {
    /// Every pass reads all there is, so the right answer is tried first: one pass shows how much of it the model would
    /// have said. Only after a mistake does it go on token by token.
    fn answer(&mut self, paper: &Paper<'_>, watch: &dyn Watch) -> Result<Vec<u32>, ExamError> {
        let mut answer = Vec::new();
        let mut guess = paper.expected;
        while !watch.is_cancelled() {
            let first = paper.prompt.len() + answer.len() - 1;
            let tokens = [paper.prompt, &answer, guess].concat();
            for (i, next) in self.likeliest_from(first, &tokens)?.into_iter().enumerate() {
                answer.push(next);
                if paper.stop_tokens.contains(&next) || answer.len() == paper.most_tokens {
                    return Ok(answer);
                }
                if guess.get(i) != Some(&next) {
                    break;
                }
            }
            guess = &[];
        }
        Err(ExamError::Cancelled)
    }
}
