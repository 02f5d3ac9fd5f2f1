//! A bundle on a backend, made to say what it makes of tokens.

use lone_bundle::Role;
use lone_engine::{EngineError, Observed, RequestError, Runtime, Session, SessionOptions};
use lone_lfm::Stage;

use crate::ranking::argmax;
use crate::{Record, RecordError, State, Watch};

/// Why two records could not be had and compared.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the variants are what they hold")]
pub enum VerifyError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("cancelled")]
    Cancelled,
}

/// A session on a loaded bundle that writes down every state it goes through.
pub struct Candidate<'a> {
    runtime: &'a mut Runtime,
    session: Session,
    role: Role,
    /// Most tokens of a pass.
    pass_tokens: usize,
    record: Record,
    /// The likeliest token to follow.
    next: Option<u32>,
}

impl<'a> Candidate<'a> {
    /// An empty session that reads by passes of `role`, the shortest there are.
    ///
    /// # Errors
    /// [`VerifyError::Engine`] if there is no memory for its caches.
    pub fn new(runtime: &'a mut Runtime, role: Role) -> Result<Self, VerifyError> {
        let session = runtime.session(&SessionOptions { snapshots: 0, ..SessionOptions::default() })?;
        let shape = runtime.shapes().find(|&(of, _, ctx)| (of, ctx) == (role, session.ctx()));
        // A role that is not loaded is refused by the first pass.
        let pass_tokens = shape.map_or(1, |(_, tokens, _)| tokens);
        let record = Record { tokens: vec![], positions: vec![], states: vec![], logits: vec![] };
        Ok(Candidate { runtime, session, role, pass_tokens, record, next: None })
    }

    /// The same, by passes of `tokens` tokens; of a size that is not loaded, the first is refused.
    ///
    /// # Panics
    /// If `tokens` is 0.
    #[must_use]
    pub fn by_passes_of(self, tokens: usize) -> Self {
        assert_ne!(tokens, 0, "a pass has tokens");
        Candidate { pass_tokens: tokens, ..self }
    }

    /// Reads `tokens` and writes down the positions that are `wanted`.
    ///
    /// # Errors
    /// [`VerifyError::Engine`] for no tokens at all, for ones that the model does not have or the context does not hold,
    /// and for a role that is not loaded; [`VerifyError::Cancelled`].
    pub fn read(
        &mut self,
        tokens: &[u32],
        wanted: &dyn Fn(usize) -> bool,
        watch: &mut dyn Watch,
    ) -> Result<(), VerifyError> {
        self.check(tokens).map_err(EngineError::from)?;
        for pass in tokens.chunks(self.pass_tokens) {
            if watch.is_cancelled() {
                return Err(VerifyError::Cancelled);
            }
            let layer_count = self.runtime.facts().layers.len();
            let (record, next) = (&mut self.record, &mut self.next);
            self.session.observe_by(self.runtime, (self.role, self.pass_tokens), pass, |observed| {
                *next = Some(argmax(observed.logits).id);
                if wanted(observed.position) {
                    record.note(observed, layer_count);
                }
            })?;
            self.record.tokens.extend_from_slice(pass);
            watch.advance(pass.len());
        }
        Ok(())
    }

    /// Refuses tokens before the first of them is read.
    fn check(&self, tokens: &[u32]) -> Result<(), RequestError> {
        let (held, ctx) = (self.session.position() + tokens.len(), self.session.ctx());
        match held {
            0 => Err(RequestError::EmptyPrompt),
            held if held > ctx => Err(RequestError::PromptTooLong { tokens: held, ctx }),
            _ => self.runtime.check_tokens(tokens),
        }
    }

    /// Answers what it has read: chooses the likeliest token, reads it and writes it down, until that is among
    /// `stop_tokens`, or `max_new_tokens` have been chosen, or the context is full. The last token is not read.
    ///
    /// # Errors
    /// As [`Candidate::read`].
    ///
    /// # Panics
    /// If it has read nothing.
    pub fn answer(
        &mut self,
        max_new_tokens: usize,
        stop_tokens: &[u32],
        watch: &mut dyn Watch,
    ) -> Result<Vec<u32>, VerifyError> {
        let mut answer = Vec::new();
        while answer.len() < max_new_tokens {
            let next = self.next.expect("something has been read");
            answer.push(next);
            let is_last = stop_tokens.contains(&next) || answer.len() == max_new_tokens;
            if is_last || self.session.remaining() == 0 {
                break;
            }
            self.read(&[next], &|_| true, watch)?;
        }
        Ok(answer)
    }

    /// What has been written down.
    pub fn into_record(self) -> Record {
        self.record
    }
}

impl Record {
    /// Adds a row of everything that can be seen.
    fn note(&mut self, observed: &Observed<'_>, layer_count: usize) {
        self.positions.push(observed.position);
        self.logits.extend_from_slice(observed.logits);
        self.append(Stage::Embeddings, &observed.embedding());
        for layer in 0..layer_count {
            if let Some(row) = observed.layer(layer) {
                self.append(Stage::Layer(layer), &row);
            }
        }
        self.append(Stage::Final, &observed.final_hidden());
    }

    fn append(&mut self, stage: Stage, row: &[f32]) {
        match self.states.iter_mut().find(|state| state.stage == stage) {
            Some(state) => state.rows.extend_from_slice(row),
            None => self.states.push(State { stage, rows: row.to_vec() }),
        }
    }
}
