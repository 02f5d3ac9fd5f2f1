//! One answer of a chat completion, from the engine's events to pieces of OpenAI's shapes.

use lone_engine::{Event, FinishReason, News, Part, Parts, ToolCall};
use lone_lfm::Tokenizer;

use crate::identity::fresh;
use crate::reply::{
    ChatChoice, ChatLogprobs, ChatMessage, Delta, FunctionCall, TokenLogprob, ToolCallDelta, token_logprob,
};

/// An answer in the making.
#[derive(Debug)]
pub(crate) struct Choice {
    parts: Option<Parts>,
    stop_tokens: Vec<u32>,
    parallel_calls: bool,
    /// Calls so far.
    calls: usize,
    /// Tokens whose text is not told yet.
    pending: Vec<TokenLogprob>,
    reasoning_tokens: usize,
}

/// What is new, and what came with it.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) delta: Delta,
    pub(crate) logprobs: Option<ChatLogprobs>,
    pub(crate) finish_reason: Option<&'static str>,
}

impl Choice {
    pub(crate) fn new(parts: Parts, stop_tokens: Vec<u32>, parallel_calls: bool) -> Self {
        let (calls, pending) = (0, Vec::new());
        Choice { parts: Some(parts), stop_tokens, parallel_calls, calls, pending, reasoning_tokens: 0 }
    }

    /// Tokens of reasoning so far.
    pub(crate) fn reasoning_tokens(&self) -> usize {
        self.reasoning_tokens
    }

    /// The pieces that news makes.
    pub(crate) fn hear(&mut self, tokenizer: &Tokenizer, news: News) -> Vec<Piece> {
        match news {
            News::Event(Event::Token { id, logprobs }) => {
                self.reasoning_tokens += usize::from(self.parts.as_ref().is_some_and(Parts::is_reasoning));
                if let Some(logprobs) = logprobs.filter(|_| !self.stop_tokens.contains(&id)) {
                    self.pending.push(token_logprob(tokenizer, id, &logprobs));
                }
                Vec::new()
            }
            News::Event(Event::Text(text)) => {
                let parts = self.parts.as_mut().map(|parts| parts.push(&text)).unwrap_or_default();
                self.pieces(parts)
            }
            News::Ended(ended) => self.end(ended.reason),
            News::Event(Event::Done(_)) | News::Refused(_) | News::Failed(_) => Vec::new(),
        }
    }

    fn end(&mut self, reason: FinishReason) -> Vec<Piece> {
        let parts = self.parts.take().map(Parts::finish).unwrap_or_default();
        let mut pieces = self.pieces(parts);
        let finish_reason = match reason {
            FinishReason::Stop if self.calls > 0 => "tool_calls",
            reason => reason.as_str(),
        };
        // Tokens whose text never came out stay untold too, unless it is for want of room.
        let untold = std::mem::take(&mut self.pending);
        let untold =
            (reason == FinishReason::Length && !untold.is_empty()).then(|| ChatLogprobs::new(untold));
        pieces.push(Piece { logprobs: untold, finish_reason: Some(finish_reason), ..Piece::default() });
        pieces
    }

    fn pieces(&mut self, parts: Vec<Part>) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = parts.into_iter().filter_map(|part| self.piece(part)).collect();
        if let Some(first) = pieces.first_mut().filter(|_| !self.pending.is_empty()) {
            first.logprobs = Some(ChatLogprobs::new(std::mem::take(&mut self.pending)));
        }
        pieces
    }

    fn piece(&mut self, part: Part) -> Option<Piece> {
        let delta = match part {
            Part::Content(text) => Delta { content: Some(text), ..Delta::default() },
            Part::Reasoning(text) => Delta { reasoning_content: Some(text), ..Delta::default() },
            Part::Calls(calls) => Delta { tool_calls: self.take_calls(calls), ..Delta::default() },
        };
        let is_empty =
            delta.content.is_none() && delta.reasoning_content.is_none() && delta.tool_calls.is_empty();
        (!is_empty).then(|| Piece { delta, ..Piece::default() })
    }

    fn take_calls(&mut self, calls: Vec<ToolCall>) -> Vec<ToolCallDelta> {
        let room = if self.parallel_calls { calls.len() } else { 1 - self.calls.min(1) };
        let calls = calls.into_iter().take(room).map(|ToolCall { name, arguments }| {
            let index = self.calls;
            self.calls += 1;
            let function = FunctionCall { name, arguments };
            ToolCallDelta { index: Some(index), id: fresh("call_"), kind: "function", function }
        });
        calls.collect()
    }
}

impl ChatChoice {
    /// An answer that says nothing yet.
    pub(crate) fn empty() -> Self {
        let message = ChatMessage { role: "assistant", ..ChatMessage::default() };
        ChatChoice { index: 0, message, logprobs: None, finish_reason: "" }
    }

    /// Appends a piece.
    pub(crate) fn add(&mut self, piece: Piece) {
        let Piece { delta, logprobs, finish_reason } = piece;
        append(&mut self.message.content, delta.content);
        append(&mut self.message.reasoning_content, delta.reasoning_content);
        let calls = delta.tool_calls.into_iter().map(|call| ToolCallDelta { index: None, ..call });
        self.message.tool_calls.extend(calls);
        if let Some(logprobs) = logprobs {
            self.logprobs.get_or_insert_default().content.extend(logprobs.content);
        }
        self.finish_reason = finish_reason.unwrap_or(self.finish_reason);
    }

    /// The answer, when all of it is there: saying nothing is an empty text, unless there are calls.
    pub(crate) fn complete(mut self) -> Self {
        if self.message.content.is_none() && self.message.tool_calls.is_empty() {
            self.message.content = Some(String::new());
        }
        self
    }
}

fn append(whole: &mut Option<String>, piece: Option<String>) {
    if let Some(piece) = piece {
        whole.get_or_insert_default().push_str(&piece);
    }
}
