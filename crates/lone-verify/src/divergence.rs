//! Where two greedy answers to one prompt part.
//!
//! Up to there they are the same tokens, so one pass of the reference over the candidate's answer finds the place: it
//! is the first token that the reference would not have chosen.

use serde::Serialize;

use crate::Record;
use crate::ranking::argmax;

/// A margin below this, in logits, is a near tie: fp16 logits of 16 to 32 come in steps of 1/64, and a few such steps
/// of rounding decide between the two tokens.
pub const NEAR_TIE: f32 = 0.1;

/// The first token of an answer that the reference would not have chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Divergence {
    /// Which token of the answer, counting from 0.
    pub index: usize,
    /// What the reference chooses.
    pub reference: u32,
    /// What the candidate chose.
    pub candidate: u32,
    /// How far the reference puts its token before the candidate's, in logits.
    pub margin: f32,
    /// Whether that is so little that rounding decides.
    pub near_tie: bool,
}

impl Divergence {
    /// Of the answer `answer` to the first `prompt_length` tokens of `reference`, which read prompt and answer, but for
    /// the answer's last token perhaps, and has a row for every position. `None` if it would have answered the same.
    ///
    /// # Panics
    /// If the record is shorter than that, or the prompt is empty.
    pub fn first(reference: &Record, prompt_length: usize, answer: &[u32]) -> Option<Self> {
        answer.iter().enumerate().find_map(|(index, &candidate)| {
            let logits = reference.logits_of(prompt_length - 1 + index);
            let chosen = argmax(logits);
            if chosen.id == candidate {
                return None;
            }
            let margin = chosen.logit - logits[candidate as usize];
            let near_tie = margin < NEAR_TIE;
            Some(Divergence { index, reference: chosen.id, candidate, margin, near_tie })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chooses 1, 0, 2 after its three positions.
    fn reference() -> Record {
        let logits = vec![0.0, 1.0, 0.5, 3.0, 1.0, 2.95, 0.0, 0.0, 9.0];
        Record { tokens: vec![7, 8, 1], positions: vec![0, 1, 2], states: Vec::new(), logits }
    }

    #[test]
    fn the_same_answer_does_not_diverge() {
        assert_eq!(Divergence::first(&reference(), 2, &[0, 2]), None);
        assert_eq!(Divergence::first(&reference(), 3, &[]), None);
    }

    #[test]
    fn the_first_token_that_differs_is_named_with_its_margin() {
        let expected = Divergence { index: 1, reference: 2, candidate: 1, margin: 9.0, near_tie: false };
        assert_eq!(Divergence::first(&reference(), 2, &[0, 1]), Some(expected));
        let tie = Divergence::first(&reference(), 2, &[2, 1]).unwrap();
        assert_eq!((tie.index, tie.reference, tie.candidate, tie.near_tie), (0, 0, 2, true));
    }
}
