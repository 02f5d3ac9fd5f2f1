//! Whether guesses are worth a pass: how often they were right, what the pass costs, and what may be lost on trying.
//!
//! All sums are in passes of one token, which say one token each.

/// Matches of at least 1, 2, 4, … tokens are judged apart from each other.
const CLASSES: usize = 6;

/// How often a guess is right after matches of each class, before anything is known of this history.
const USUAL_RATES: [f64; CLASSES] = [0.3, 0.5, 0.7, 0.85, 0.92, 0.95];

/// How many guesses that experience counts for, and how many are remembered at most.
const USUAL_WEIGHT: f64 = 2.0;
const MOST_WEIGHT: f64 = 64.0;

/// What a checking pass is taken to cost until it was measured.
const USUAL_COST: f64 = 1.5;

/// How much more than its cost a pass must promise.
const MARGIN: f64 = 1.1;

/// Guesses less likely than this to be reached and right are left out.
const LEAST_CHANCE: f64 = 0.05;

/// What may be lost at the start, what may be lost more for each token, and what gains add to that at most.
const FIRST_ALLOWANCE: f64 = 0.5;
const ALLOWANCE_PER_TOKEN: f64 = 1.0 / 400.0;
const MOST_ALLOWANCE: f64 = 4.0;

/// Matches this long are no chance: they may be tried whatever was lost, as long as their own class does well.
const SURE_LENGTH: usize = 16;

/// What experience says of guesses, and how much more of it can be afforded.
#[derive(Debug)]
pub(crate) struct Odds {
    classes: [Class; CLASSES],
    allowance: f64,
}

#[derive(Debug, Clone, Copy)]
struct Class {
    accepted: f64,
    judged: f64,
}

impl Default for Odds {
    fn default() -> Self {
        let class = |rate| Class { accepted: USUAL_WEIGHT * rate, judged: USUAL_WEIGHT };
        Odds { classes: USUAL_RATES.map(class), allowance: FIRST_ALLOWANCE }
    }
}

impl Odds {
    /// How many guesses, of at most `most`, to make after a match of `length` tokens if checking them costs `cost`.
    pub(crate) fn worthwhile(&self, length: usize, most: usize, cost: Option<f64>) -> usize {
        if self.allowance <= 0.0 && length < SURE_LENGTH {
            return 0;
        }
        let rate = self.classes[class(length)].rate();
        let (mut guesses, mut chance, mut expected) = (0, rate, 1.0);
        while guesses < most && chance >= LEAST_CHANCE {
            guesses += 1;
            expected += chance;
            chance *= rate;
        }
        if expected >= MARGIN * cost.unwrap_or(USUAL_COST) { guesses } else { 0 }
    }

    /// A token was added to the history.
    pub(crate) fn count_token(&mut self) {
        self.allowance = (self.allowance + ALLOWANCE_PER_TOKEN).min(MOST_ALLOWANCE);
    }

    /// Of guesses after a match of `length` tokens, `accepted` were right and perhaps one was `rejected`; checking
    /// them cost `cost`.
    pub(crate) fn learn(&mut self, length: usize, accepted: usize, rejected: bool, cost: Option<f64>) {
        self.classes[class(length)].learn(accepted, rejected);
        let gain = 1.0 + accepted as f64 - cost.unwrap_or(USUAL_COST);
        self.allowance = (self.allowance + gain).min(MOST_ALLOWANCE);
    }
}

impl Class {
    fn rate(self) -> f64 {
        self.accepted / self.judged
    }

    fn learn(&mut self, accepted: usize, rejected: bool) {
        self.accepted += accepted as f64;
        self.judged += accepted as f64 + f64::from(u8::from(rejected));
        let scale = (MOST_WEIGHT / self.judged).min(1.0);
        self.accepted *= scale;
        self.judged *= scale;
    }
}

fn class(length: usize) -> usize {
    (length.max(1).ilog2() as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_matches_are_trusted_and_single_tokens_are_not() {
        let odds = Odds::default();
        assert_eq!(odds.worthwhile(1, 16, None), 0);
        assert_eq!(odds.worthwhile(2, 16, None), 4);
        assert_eq!(odds.worthwhile(40, 16, None), 16);
        assert_eq!(odds.worthwhile(40, 5, None), 5);
    }

    #[test]
    fn a_pass_that_costs_more_than_it_promises_is_not_made() {
        let odds = Odds::default();
        assert_eq!(odds.worthwhile(4, 16, Some(2.0)), 8);
        assert_eq!(odds.worthwhile(4, 16, Some(4.0)), 0);
        assert_eq!(odds.worthwhile(64, 16, Some(4.0)), 16);
    }

    #[test]
    fn guesses_that_do_well_are_made_longer_and_after_shorter_matches() {
        let mut odds = Odds::default();
        for _ in 0..4 {
            odds.learn(1, 8, false, Some(1.4));
        }
        assert_eq!(odds.worthwhile(1, 16, Some(1.4)), 16);
        for _ in 0..200 {
            odds.learn(1, 0, true, Some(1.4));
            odds.count_token();
        }
        assert_eq!(odds.worthwhile(1, 16, Some(1.4)), 0, "what did well once is forgotten");
    }

    #[test]
    fn a_history_where_no_guess_is_right_loses_less_than_a_hundredth() {
        for cost in [1.1, 1.4, 2.0, 3.0] {
            let (mut odds, mut lost) = (Odds::default(), 0.0);
            for token in 0..512 {
                let length = 1 + token % 8;
                if odds.worthwhile(length, 16, Some(cost)) > 0 {
                    odds.learn(length, 0, true, Some(cost));
                    lost += cost - 1.0;
                }
                odds.count_token();
            }
            assert!(lost < 5.12, "cost {cost}: {lost} passes of 512");
        }
    }

    #[test]
    fn a_loss_does_not_keep_long_matches_from_being_tried() {
        let mut odds = Odds::default();
        odds.learn(2, 0, true, Some(5.0));
        assert_eq!(odds.worthwhile(8, 16, Some(1.4)), 0);
        assert!(odds.worthwhile(16, 16, Some(1.4)) > 0);
    }
}
