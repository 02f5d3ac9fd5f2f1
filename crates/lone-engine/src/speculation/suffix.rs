//! The proposer that finds the longest repeat: what followed the last place where as much as possible was the same.

use super::automaton::{Match, SuffixAutomaton};
use super::experience::Experience;
use super::{Proposer, Terms};

/// Guesses after matches of any length, as many tokens as are worth it.
///
/// Each token costs a constant, however long the history. Whether a match is followed up depends on how often matches
/// of its length told the next token, on what a checking pass costs, and on what has been gained so far. A history
/// that cannot profit makes no pass. A repeat that runs into the present is continued in itself.
#[derive(Debug, Default)]
pub struct SuffixProposer {
    automaton: SuffixAutomaton,
    experience: Experience,
    most: Option<usize>,
    cost: Option<f64>,
    /// What checking the last guesses costs, until it is known what became of them.
    asked: Option<Option<f64>>,
    unasked: Option<Unasked>,
}

/// Guesses that would be worth a pass, and are not asked for: time tells as well.
#[derive(Debug, Clone, Copy)]
struct Unasked {
    /// The position of the next one.
    at: usize,
    left: usize,
    right: usize,
    cost: Option<f64>,
}

impl SuffixProposer {
    /// A proposer with nothing before it, and no experience.
    pub fn new() -> Self {
        SuffixProposer::default()
    }

    /// Takes part in `experience`.
    #[must_use]
    pub fn with_experience(self, experience: &Experience) -> Self {
        SuffixProposer { experience: experience.clone(), ..self }
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
        (self.asked, self.unasked) = (None, None);
        if !history.starts_with(self.automaton.text()) {
            self.automaton = SuffixAutomaton::default();
        }
        for &token in &history[self.automaton.text().len()..] {
            self.automaton.push(token);
        }
    }

    fn push(&mut self, token: u32) {
        let mut odds = self.experience.odds();
        let text = self.automaton.text();
        odds.count_token();
        if let Some(Match { length, end }) = self.automaton.longest_match() {
            odds.judge(length, text[end] == token);
        }
        self.unasked = self.unasked.and_then(|unasked| {
            let goes_on = unasked.left > 0 && text[unasked.at] == token;
            let Unasked { at, left, right, cost } = unasked;
            let next = if goes_on {
                Unasked { at: at + 1, left: left - 1, right: right + 1, cost }
            } else {
                unasked
            };
            let is_proved = odds.promise(next.right, cost, !goes_on);
            (goes_on && !is_proved).then_some(next)
        });
        self.automaton.push(token);
    }

    fn propose(&mut self, terms: &Terms, draft: &mut Vec<u32>) {
        let Some(Match { length, end }) = self.automaton.longest_match() else { return };
        let most = terms.most.min(self.most.unwrap_or(usize::MAX));
        let cost = self.cost.or(terms.cost);
        let odds = self.experience.odds();
        let guesses = odds.worthwhile(length, most, cost);
        if guesses == 0 {
            return;
        }
        if !odds.can_afford(cost) {
            self.unasked.get_or_insert(Unasked { at: end, left: guesses, right: 0, cost });
            return;
        }
        let text = self.automaton.text();
        for at in end..end + guesses {
            let token = text.get(at).unwrap_or_else(|| &draft[at - text.len()]);
            draft.push(*token);
        }
        (self.asked, self.unasked) = (Some(cost), None);
    }

    fn learn(&mut self, accepted: usize, _rejected: bool) {
        if let Some(cost) = self.asked.take() {
            self.experience.odds().settle(accepted, cost);
        }
    }
}

#[cfg(test)]
mod tests;
