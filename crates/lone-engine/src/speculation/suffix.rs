//! The proposer that finds the longest repeat: what followed the last place where as much as possible was the same.

use super::automaton::{Match, SuffixAutomaton};
use super::odds::Odds;
use super::{Proposer, Terms};

/// Guesses after matches of any length, as many tokens as have been worth it.
///
/// Each token costs a constant, however long the history. Whether a match is followed up depends on how often guesses
/// after matches of its length were right, on what a checking pass costs, and on what has been lost so far, so a
/// history that cannot profit costs next to nothing. A repeat that runs into the present is continued in itself.
#[derive(Debug, Default)]
pub struct SuffixProposer {
    automaton: SuffixAutomaton,
    odds: Odds,
    most: Option<usize>,
    cost: Option<f64>,
    /// The match that was last followed up, and the cost of checking what came of it.
    followed: Option<(usize, Option<f64>)>,
}

impl SuffixProposer {
    /// A proposer with nothing before it.
    pub fn new() -> Self {
        SuffixProposer::default()
    }

    /// Guesses at most `tokens` at once.
    #[must_use]
    pub fn with_most(self, tokens: usize) -> Self {
        SuffixProposer { most: Some(tokens), ..self }
    }

    /// Takes a checking pass to cost as much as `cost` passes of one token, whatever is measured; so that its choices
    /// depend on the tokens alone.
    #[must_use]
    pub fn with_cost(self, cost: f64) -> Self {
        SuffixProposer { cost: Some(cost), ..self }
    }
}

impl Proposer for SuffixProposer {
    fn begin(&mut self, history: &[u32]) {
        if !history.starts_with(self.automaton.text()) {
            self.automaton = SuffixAutomaton::default();
        }
        for &token in &history[self.automaton.text().len()..] {
            self.automaton.push(token);
        }
    }

    fn push(&mut self, token: u32) {
        self.automaton.push(token);
        self.odds.count_token();
    }

    fn propose(&mut self, terms: &Terms, draft: &mut Vec<u32>) {
        self.followed = None;
        let Some(Match { length, end }) = self.automaton.longest_match() else { return };
        let most = terms.most.min(self.most.unwrap_or(usize::MAX));
        let cost = self.cost.or(terms.cost);
        let text = self.automaton.text();
        for at in end..end + self.odds.worthwhile(length, most, cost) {
            let token = text.get(at).unwrap_or_else(|| &draft[at - text.len()]);
            draft.push(*token);
        }
        self.followed = (!draft.is_empty()).then_some((length, cost));
    }

    fn learn(&mut self, accepted: usize, rejected: bool) {
        if let Some((length, cost)) = self.followed.take() {
            self.odds.learn(length, accepted, rejected, cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(proposer: &mut SuffixProposer, most: usize) -> Vec<u32> {
        let mut draft = Vec::new();
        proposer.propose(&Terms { most, cost: Some(1.2) }, &mut draft);
        draft
    }

    #[test]
    fn it_guesses_what_followed_the_longest_repeat() {
        let mut proposer = SuffixProposer::new();
        proposer.begin(&[1, 2, 3, 4, 5, 6, 7, 9, 2, 3, 8, 8, 1, 2]);
        proposer.push(3);
        assert_eq!(guess(&mut proposer, 3), [4, 5, 6]);
        assert_eq!(guess(&mut proposer.with_most(2), 3), [4, 5]);
    }

    #[test]
    fn a_repeat_that_runs_into_the_present_goes_round() {
        let mut proposer = SuffixProposer::new();
        proposer.begin(&[1, 2, 3, 1, 2, 3, 1, 2]);
        assert_eq!(guess(&mut proposer, 7), [3, 1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn without_a_repeat_or_a_profit_it_guesses_nothing() {
        let mut proposer = SuffixProposer::new();
        assert!(guess(&mut proposer, 9).is_empty());
        proposer.begin(&[1, 2, 3, 4]);
        assert!(guess(&mut proposer, 9).is_empty());
        let mut proposer = SuffixProposer::new().with_cost(9.0);
        proposer.begin(&[1, 2, 3, 1, 2]);
        assert!(guess(&mut proposer, 9).is_empty());
    }

    #[test]
    fn a_history_that_goes_on_is_not_read_again_and_another_one_is() {
        let mut proposer = SuffixProposer::new();
        proposer.begin(&[1, 2, 3, 4, 5]);
        proposer.push(1);
        proposer.begin(&[1, 2, 3, 4, 5, 1, 2, 3]);
        assert_eq!(guess(&mut proposer, 2), [4, 5]);
        proposer.begin(&[7, 8, 9, 7, 8]);
        assert_eq!(guess(&mut proposer, 2), [9, 7]);
    }
}
