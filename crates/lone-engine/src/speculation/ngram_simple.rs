//! The proposer of llama.cpp's `ngram-simple`: what followed the last place where the same n tokens stood.

use super::{Proposer, Terms};

/// Looks for the last n tokens earlier in the history, latest place first, and guesses the m that followed there.
///
/// As the original does, it guesses nothing until the history is longer than n + m + 1, takes no notice of a place at
/// the very start, and drops guesses of fewer than n tokens.
#[derive(Debug, Clone)]
pub struct NgramSimple {
    n: usize,
    m: usize,
    history: Vec<u32>,
}

impl NgramSimple {
    /// Tokens that must be the same, unless something else is asked for.
    pub const USUAL_N: usize = 12;
    /// Tokens guessed, unless something else is asked for.
    pub const USUAL_M: usize = 16;

    /// Guesses `m` tokens where `n` are the same.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn new(n: usize, m: usize) -> Self {
        assert!(n > 0, "no tokens are the same everywhere");
        NgramSimple { n, m, history: Vec::new() }
    }

    fn guess(&self) -> &[u32] {
        let NgramSimple { n, m, ref history } = *self;
        // The newest token is not part of what is searched.
        let Some(past) = history.len().checked_sub(1).map(|past| &history[..past]) else { return &[] };
        if past.len() <= n + m + 1 {
            return &[];
        }
        let pattern = &history[history.len() - n..];
        let place = (1..past.len() - n).rev().find(|&place| past[place..place + n] == *pattern);
        let guess = place.map_or(&[][..], |place| &past[place + n..]);
        let guess = &guess[..m.min(guess.len())];
        if guess.len() < n { &[] } else { guess }
    }
}

impl Proposer for NgramSimple {
    fn begin(&mut self, history: &[u32]) {
        self.history.clear();
        self.history.extend_from_slice(history);
    }

    fn push(&mut self, token: u32) {
        self.history.push(token);
    }

    fn propose(&mut self, terms: &Terms, draft: &mut Vec<u32>) {
        let guess = self.guess();
        draft.extend_from_slice(&guess[..terms.most.min(guess.len())]);
    }

    fn learn(&mut self, _accepted: usize, _rejected: bool) {}
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Case {
        n: usize,
        m: usize,
        history: Vec<u32>,
        newest: u32,
        draft: Vec<u32>,
    }

    #[test]
    fn it_guesses_what_llama_cpp_guesses() {
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../../tests/fixtures/ngram_simple.json")).unwrap();
        assert_eq!(cases.len(), 150);
        for (i, case) in cases.iter().enumerate() {
            let mut proposer = NgramSimple::new(case.n, case.m);
            proposer.begin(&case.history);
            proposer.push(case.newest);
            let mut draft = Vec::new();
            proposer.propose(&Terms { most: usize::MAX, cost: None }, &mut draft);
            assert_eq!(draft, case.draft, "case {i}");
        }
    }

    #[test]
    fn a_pass_takes_the_first_of_too_many_guesses() {
        let mut proposer = NgramSimple::new(2, 6);
        proposer.begin(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1]);
        proposer.push(2);
        let mut draft = Vec::new();
        proposer.propose(&Terms { most: 4, cost: None }, &mut draft);
        assert_eq!(draft, [3, 4, 5, 6]);
    }
}
