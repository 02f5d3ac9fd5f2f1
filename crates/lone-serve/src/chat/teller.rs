//! A chat completion as a stream of chunks.

use axum::response::sse::Event;
use lone_engine::News;

use super::choice::{Choice, Piece};
use crate::error::ApiError;
use crate::identity::Identity;
use crate::reply::{ChatChunk, ChunkChoice, Delta};
use crate::sse::{Teller, data, done};
use crate::state::Shared;
use crate::tally::Tally;

pub(super) struct ChatTeller {
    server: Shared,
    identity: Identity,
    choices: Vec<Choice>,
    includes_usage: bool,
}

impl ChatTeller {
    pub(super) fn new(
        server: Shared,
        identity: Identity,
        choices: Vec<Choice>,
        includes_usage: bool,
    ) -> Self {
        ChatTeller { server, identity, choices, includes_usage }
    }

    fn chunk(&self, index: usize, piece: Piece) -> Event {
        let Piece { delta, logprobs, finish_reason } = piece;
        data(&ChatChunk::new(&self.identity, vec![ChunkChoice { index, delta, logprobs, finish_reason }]))
    }
}

impl Teller for ChatTeller {
    fn begin(&mut self) -> Vec<Event> {
        let opening = |index| {
            let delta = Delta { role: Some("assistant"), content: Some(String::new()), ..Delta::default() };
            self.chunk(index, Piece { delta, ..Piece::default() })
        };
        (0..self.choices.len()).map(opening).collect()
    }

    fn hear(&mut self, index: usize, news: News) -> Vec<Event> {
        let pieces = self.choices[index].hear(&self.server.model.tokenizer, news);
        pieces.into_iter().map(|piece| self.chunk(index, piece)).collect()
    }

    fn end(&mut self, tally: &Tally) -> Vec<Event> {
        if !self.includes_usage {
            return vec![done()];
        }
        let reasoning_tokens = self.choices.iter().map(Choice::reasoning_tokens).sum();
        let last = ChatChunk::last(&self.identity, tally.usage(reasoning_tokens), tally.timings());
        vec![data(&last), done()]
    }

    fn fail(&mut self, error: &ApiError) -> Vec<Event> {
        vec![data(&error.body()), done()]
    }
}
