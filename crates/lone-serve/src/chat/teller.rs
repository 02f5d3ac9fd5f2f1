//! A chat completion as a stream of chunks.

use axum::response::sse::Event;
use lone_engine::News;

use super::choice::{Choice, Piece};
use crate::error::ApiError;
use crate::identity::Identity;
use crate::reply::{ChatChunk, ChunkChoice, Delta, Usage};
use crate::request::UsageTold;
use crate::sse::{Teller, data, done};
use crate::state::Shared;
use crate::tally::Tally;

pub(super) struct ChatTeller {
    server: Shared,
    identity: Identity,
    choices: Vec<Choice>,
    usage_told: UsageTold,
}

impl ChatTeller {
    pub(super) fn new(
        server: Shared,
        identity: Identity,
        choices: Vec<Choice>,
        usage_told: UsageTold,
    ) -> Self {
        ChatTeller { server, identity, choices, usage_told }
    }

    fn chunk(&self, index: usize, piece: Piece, usage: Option<Usage>) -> Event {
        let Piece { delta, logprobs, finish_reason } = piece;
        let choices = vec![ChunkChoice { index, delta, logprobs, finish_reason }];
        data(&ChatChunk::new(&self.identity, choices).costing(usage, None))
    }

    fn usage(&self, tally: &Tally) -> Usage {
        tally.usage(self.choices.iter().map(Choice::reasoning_tokens).sum())
    }
}

impl Teller for ChatTeller {
    fn begin(&mut self) -> Vec<Event> {
        let opening = |index| {
            let delta = Delta { role: Some("assistant"), content: Some(String::new()), ..Delta::default() };
            self.chunk(index, Piece { delta, ..Piece::default() }, None)
        };
        (0..self.choices.len()).map(opening).collect()
    }

    fn hear(&mut self, index: usize, news: News, tally: &Tally) -> Vec<Event> {
        let pieces = self.choices[index].hear(&self.server.model.tokenizer, news);
        let usage = self.usage_told.always.then(|| self.usage(tally));
        pieces.into_iter().map(|piece| self.chunk(index, piece, usage)).collect()
    }

    fn end(&mut self, tally: &Tally) -> Vec<Event> {
        if !self.usage_told.at_end {
            return vec![done()];
        }
        let last = ChatChunk::new(&self.identity, Vec::new())
            .costing(Some(self.usage(tally)), Some(tally.timings()));
        vec![data(&last), done()]
    }

    fn fail(&mut self, error: &ApiError) -> Vec<Event> {
        vec![data(&error.body()), done()]
    }
}
