//! Speculation: tokens guessed from what stands before, checked many in one pass.
//!
//! A [`Proposer`] guesses; the model is asked what it would say after the last token and after each guess, in one
//! pass, and says it by the sampler's ordinary choice. A guess that is what was chosen is accepted, and the first that
//! is not ends the pass with the choice in its place. So a guess x is accepted with the model's own probability of x
//! after all settings, and what stands in place of a rejected one is drawn from the others: exact rejection sampling
//! for a guess that is certain of itself. As each token takes one random number either way, the same seed gives the
//! same answer with and without speculation, wherever the model's logits are the same.

mod automaton;
mod experience;
mod ngram_simple;
mod odds;
mod pace;
mod suffix;

use std::fmt::Debug;
use std::ops::AddAssign;

pub use experience::Experience;
pub use ngram_simple::NgramSimple;
pub(crate) use pace::Pace;
pub use suffix::SuffixProposer;

/// Guesses what follows a history of tokens.
pub trait Proposer: Debug + Send {
    /// The history is now `history`. What is remembered of one that begins alike may be kept.
    fn begin(&mut self, history: &[u32]);

    /// `token` follows.
    fn push(&mut self, token: u32);

    /// Appends guesses of what follows to `draft`, which is empty; none where a pass for them is not worth its cost.
    fn propose(&mut self, terms: &Terms, draft: &mut Vec<u32>);

    /// What became of the last guesses: the first `accepted` were right, and the next one, if it was `rejected`, was
    /// not. Comes before the tokens themselves.
    fn learn(&mut self, accepted: usize, rejected: bool);
}

/// What checking guesses means where they are asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Terms {
    /// Guesses that can be checked in one pass; at least one.
    pub most: usize,
    /// What that pass costs, in passes of one token; absent until both were measured.
    pub cost: Option<f64>,
}

/// What speculation has come to in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speculated {
    /// Tokens guessed and checked.
    pub drafted: usize,
    /// Those of them the answer took.
    pub accepted: usize,
    /// Passes that checked any; decode passes count them too.
    pub passes: usize,
}

impl AddAssign for Speculated {
    fn add_assign(&mut self, other: Self) {
        self.drafted += other.drafted;
        self.accepted += other.accepted;
        self.passes += other.passes;
    }
}
