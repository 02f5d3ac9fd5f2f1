//! What is sent back, in OpenAI's shapes.

mod chat;
mod completion;
mod logprobs;
mod usage;

pub(crate) use chat::{
    ChatChoice, ChatChunk, ChatCompletion, ChatMessage, ChunkChoice, Delta, FunctionCall, ToolCallDelta,
};
pub(crate) use completion::{Completion, CompletionChoice};
pub(crate) use logprobs::{ChatLogprobs, CompletionLogprobs, Offsets, TokenLogprob, token_logprob};
pub(crate) use usage::{CompletionTokensDetails, PromptTokensDetails, Timings, Usage};

/// The f64 that is written as `value` is. JSON's numbers are f64, where an f32 of 0.3 is 0.30000001192092896.
pub(crate) fn as_written(value: f32) -> f64 {
    value.to_string().parse().expect("a number is written as a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_came() {
        for (value, expected) in [(0.3, 0.3), (1.05, 1.05), (0.0, 0.0), (1e-7, 1e-7)] {
            assert_eq!(as_written(value), expected);
        }
    }
}
