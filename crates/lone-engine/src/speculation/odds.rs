//! Whether guesses are worth a pass: how often they are right, what the pass costs, and what may be lost on it.
//!
//! How often they are right costs nothing to learn: what would have been guessed is held against what was said, asked
//! or not. A pass is asked for only if what it may lose is covered, by what passes have gained or by a stake. A stake
//! is put up where guesses that were not asked for would have gained several times as much, and after a loss many
//! times. So where nothing can be gained nothing is lost, and little where what was promised does not come true.
//!
//! All sums are in passes of one token, which say one token each.

/// Matches of at least 1, 2, 4, … tokens are judged apart from each other.
const CLASSES: usize = 6;

/// How often the token after matches of each class is right, before anything is known.
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

/// What a pass of which all guesses are wrong loses is at least taken to be so much.
const LEAST_RISK: f64 = 0.25;

/// How many times the risk must have been promised before it is put up, and how many times more for each time it was
/// lost.
const PROMISES: f64 = 4.0;

/// How many risks in a row what was gained may cover at most.
const MOST_RISKS: f64 = 4.0;

/// What is forgiven of losses for each token.
const FORGIVEN_PER_TOKEN: f64 = 1.0 / 400.0;

/// What experience says of guesses, and how much may be lost on them.
#[derive(Debug)]
pub(crate) struct Odds {
    classes: [Class; CLASSES],
    /// What may be lost.
    allowance: f64,
    /// What passes have gained, stakes not counted.
    balance: f64,
    /// What passes that were not asked for would have gained since the last stake.
    promised: f64,
}

#[derive(Debug, Clone, Copy)]
struct Class {
    right: f64,
    judged: f64,
}

impl Default for Odds {
    fn default() -> Self {
        let class = |rate| Class { right: USUAL_WEIGHT * rate, judged: USUAL_WEIGHT };
        Odds { classes: USUAL_RATES.map(class), allowance: 0.0, balance: 0.0, promised: 0.0 }
    }
}

impl Odds {
    /// How many guesses, of at most `most`, to make after a match of `length` tokens if checking them costs `cost`.
    pub(crate) fn worthwhile(&self, length: usize, most: usize, cost: Option<f64>) -> usize {
        let (mut guesses, mut chance, mut expected) = (0, 1.0, 1.0);
        while guesses < most {
            // The match is longer by each guess before.
            chance *= self.classes[class(length + guesses)].rate();
            if chance < LEAST_CHANCE {
                break;
            }
            guesses += 1;
            expected += chance;
        }
        if expected >= MARGIN * cost.unwrap_or(USUAL_COST) { guesses } else { 0 }
    }

    /// Whether a pass that costs `cost` may lose what it can.
    pub(crate) fn can_afford(&self, cost: Option<f64>) -> bool {
        self.allowance >= risk(cost)
    }

    /// A token was said, after a match of `length` tokens of which `is_right` says whether it told the token.
    pub(crate) fn judge(&mut self, length: usize, is_right: bool) {
        self.classes[class(length)].judge(is_right);
    }

    /// A token was said.
    pub(crate) fn count_token(&mut self) {
        if self.balance < 0.0 {
            self.balance = (self.balance + FORGIVEN_PER_TOKEN).min(0.0);
        }
    }

    /// Of guesses that were checked at `cost`, the first `right` were right.
    pub(crate) fn settle(&mut self, right: usize, cost: Option<f64>) {
        let most = MOST_RISKS * risk(cost);
        let gain = gain(right, cost);
        self.allowance = (self.allowance + gain).min(most);
        self.balance = (self.balance + gain).min(most);
    }

    /// Of guesses that were not checked, which would have cost `cost`, the first `right` would have been right so far;
    /// `is_over` says that there are no more. Returns whether a stake was put up because of it, and ends them.
    pub(crate) fn promise(&mut self, right: usize, cost: Option<f64>, is_over: bool) -> bool {
        let promised = (self.promised + gain(right, cost)).max(0.0);
        let risk = risk(cost);
        let losses = (-self.balance / risk).max(0.0);
        let is_enough = promised >= risk * PROMISES.powf(1.0 + losses);
        if is_enough {
            self.allowance = self.allowance.max(risk);
            self.promised = 0.0;
        } else if is_over {
            self.promised = promised;
        }
        is_enough
    }
}

/// What a pass has gained of whose guesses the first `right` were right.
fn gain(right: usize, cost: Option<f64>) -> f64 {
    1.0 + right as f64 - cost.unwrap_or(USUAL_COST)
}

/// What a pass may lose.
fn risk(cost: Option<f64>) -> f64 {
    (-gain(0, cost)).max(LEAST_RISK)
}

impl Class {
    fn rate(self) -> f64 {
        self.right / self.judged
    }

    fn judge(&mut self, is_right: bool) {
        self.right += f64::from(u8::from(is_right));
        self.judged += 1.0;
        let scale = (MOST_WEIGHT / self.judged).min(1.0);
        self.right *= scale;
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
        assert_eq!(odds.worthwhile(1, 16, Some(1.8)), 0);
        assert_eq!(odds.worthwhile(2, 16, Some(1.8)), 7);
        assert_eq!(odds.worthwhile(40, 16, None), 16);
        assert_eq!(odds.worthwhile(40, 5, None), 5);
    }

    #[test]
    fn a_pass_that_costs_more_than_it_promises_is_not_made() {
        let odds = Odds::default();
        assert_eq!(odds.worthwhile(4, 16, Some(2.0)), 15);
        assert_eq!(odds.worthwhile(4, 16, Some(6.0)), 0);
        assert_eq!(odds.worthwhile(64, 16, Some(6.0)), 16);
    }

    #[test]
    fn guesses_that_do_well_are_made_longer_and_after_shorter_matches() {
        let mut odds = Odds::default();
        for _ in 0..16 {
            odds.judge(1, true);
        }
        assert!(odds.worthwhile(1, 16, Some(2.0)) > 0);
        for _ in 0..200 {
            odds.judge(1, false);
        }
        assert_eq!(odds.worthwhile(1, 16, Some(1.4)), 0, "what did well once is forgotten");
    }

    #[test]
    fn no_pass_is_afforded_until_passes_that_were_not_made_would_have_gained() {
        for (cost, expected) in [(1.1, 2), (1.5, 3), (3.0, 10)] {
            let (mut odds, cost) = (Odds::default(), Some(cost));
            for _ in 0..100 {
                assert!(!odds.promise(0, cost, true) && !odds.can_afford(cost));
            }
            let right = (1..=16).find(|&right| odds.promise(right, cost, false));
            assert_eq!((right, odds.can_afford(cost)), (Some(expected), true), "{cost:?}");
        }
    }

    #[test]
    fn gains_cover_a_few_losses_and_no_more() {
        let (mut odds, cost) = (Odds::default(), Some(1.4));
        assert!(odds.promise(16, cost, true));
        odds.settle(16, cost);
        let lost = std::iter::from_fn(|| odds.can_afford(cost).then(|| odds.settle(0, cost))).count();
        assert!((3..=4).contains(&lost), "{lost}");
    }

    /// The worst there can be: all that is not asked for is right, and nothing that is.
    #[test]
    fn promises_that_never_come_true_lose_less_than_a_hundredth() {
        for (cost, tokens) in [(1.1, 1000), (1.4, 1000), (2.0, 1000), (3.0, 1000), (5.0, 2000)] {
            let (mut odds, mut lost, mut said) = (Odds::default(), 0.0, 0);
            while said < tokens {
                for right in 1..=16 {
                    odds.count_token();
                    said += 1;
                    if odds.promise(right, Some(cost), right == 16) {
                        break;
                    }
                }
                while odds.can_afford(Some(cost)) {
                    odds.settle(0, Some(cost));
                    lost += cost - 1.0;
                }
            }
            assert!(lost > 0.0 && lost < 0.01 * f64::from(said), "cost {cost}: {lost} passes of {said}");
        }
    }
}
