//! The answer as it comes: shown at once, or kept for the end.

use lone_engine::{Event, Generation, Runtime, Session};

use crate::commands::Context;
use crate::energy::Metering;
use crate::failure::Failure;

/// Receives an answer.
pub(super) struct Answer<'a> {
    context: &'a Context,
    streams: bool,
    /// All text so far; `None` for a model without a tokenizer.
    text: Option<String>,
    /// Whether anything was shown, and what it ended with.
    last_shown: Option<char>,
}

impl<'a> Answer<'a> {
    /// An answer that is shown as it comes, if it `streams`: as text, or as token ids where there is no text.
    pub(super) fn new(context: &'a Context, streams: bool, has_text: bool) -> Self {
        Answer { context, streams, text: has_text.then(String::new), last_shown: None }
    }

    /// All text; `None` for a model without a tokenizer.
    pub(super) fn text(self) -> Option<String> {
        self.text
    }

    /// Lets `generation` run until it ends, Ctrl-C stops it, or nobody reads any more. `metering` is told when it begins, has its
    /// first token, and ends.
    pub(super) fn take(
        &mut self,
        generation: &mut Generation,
        runtime: &mut Runtime,
        session: &mut Session,
        metering: &mut Metering,
    ) -> Result<(), Failure> {
        metering.begin();
        while generation.finish_reason().is_none() {
            let had_tokens = !generation.token_ids().is_empty();
            let mut shown = Ok(());
            let context = self.context;
            let mut emit = |event: Event| {
                if shown.is_ok() {
                    shown = self.receive(event);
                }
            };
            if context.interrupt.is_raised() {
                generation.cancel(session, &mut emit);
            } else {
                generation.step(runtime, session, &mut emit)?;
            }
            shown?;
            if !had_tokens && !generation.token_ids().is_empty() {
                metering.mark();
            }
        }
        metering.mark();
        match self.last_shown {
            Some(last) if last != '\n' => self.context.ui.write("\n"),
            _ => Ok(()),
        }
    }

    fn receive(&mut self, event: Event) -> Result<(), Failure> {
        let piece = match (event, &mut self.text) {
            (Event::Text(piece), Some(text)) => {
                text.push_str(&piece);
                piece
            }
            (Event::Token { id, .. }, None) => match self.last_shown {
                None => id.to_string(),
                Some(_) => format!(" {id}"),
            },
            _ => return Ok(()),
        };
        if self.streams {
            self.last_shown = piece.chars().last();
            self.context.ui.write(&piece)?;
        }
        Ok(())
    }
}
