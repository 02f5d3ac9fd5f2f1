//! A width for each tensor: the fewest bytes for a loss.

use std::collections::BTreeMap;

use crate::palette::WeightPrecision;

/// A tensor and what it may be stored as.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) tensor: String,
    pub(super) choices: Vec<Choice>,
}

/// A way to store a tensor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice {
    pub(super) precision: WeightPrecision,
    pub(super) bytes: u64,
    /// What it loses when all other tensors stay as they are.
    pub(super) loss: f64,
}

/// Few bytes for a sum of losses of `budget` at most: from the fewest bytes there are, always the step that loses
/// least for a byte more. Gives those that are not fp16.
pub(super) fn within(candidates: &[Candidate], budget: f64) -> BTreeMap<String, WeightPrecision> {
    let smallest = |candidate: &Candidate| {
        *candidate.choices.iter().min_by_key(|choice| choice.bytes).expect("fp16 is always a choice")
    };
    let mut chosen: Vec<Choice> = candidates.iter().map(smallest).collect();
    while chosen.iter().map(|choice| choice.loss).sum::<f64>() > budget {
        let steps = chosen.iter().zip(candidates).enumerate().flat_map(|(at, (&from, candidate))| {
            let gains = candidate.choices.iter().filter_map(move |&to| Some((gain(from, to)?, at, to)));
            gains.collect::<Vec<_>>()
        });
        match steps.max_by(|(a, ..), (b, ..)| a.total_cmp(b)) {
            Some((_, at, to)) => chosen[at] = to,
            None => break,
        }
    }
    let named = candidates.iter().zip(chosen).filter(|(_, choice)| choice.precision != WeightPrecision::Fp16);
    named.map(|(candidate, choice)| (candidate.tensor.clone(), choice.precision)).collect()
}

/// What a byte more saves, if it saves anything.
fn gain(from: Choice, to: Choice) -> Option<f64> {
    let (saved, bytes) = (from.loss - to.loss, to.bytes.checked_sub(from.bytes)?);
    (saved > 0.0).then(|| saved / bytes.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tensor of so many bytes in fp16 that loses so much in 4 bits, and a tenth of it in 8.
    fn candidate(tensor: &str, bytes: u64, loss: f64) -> Candidate {
        let choice = |precision, bytes, loss| Choice { precision, bytes, loss };
        let choices = vec![
            choice(WeightPrecision::Fp16, bytes, 0.0),
            choice(WeightPrecision::Lut4, bytes / 4, loss),
            choice(WeightPrecision::Lut8, bytes / 2, loss / 10.0),
        ];
        Candidate { tensor: tensor.into(), choices }
    }

    fn chosen(budget: f64) -> Vec<(String, WeightPrecision)> {
        let candidates = [candidate("a", 1000, 0.02), candidate("b", 1000, 0.5), candidate("c", 9000, 0.5)];
        within(&candidates, budget).into_iter().collect()
    }

    #[test]
    fn the_tensor_that_loses_most_for_its_bytes_is_widened_first() {
        let names = |budget| -> Vec<String> {
            chosen(budget).into_iter().map(|(name, precision)| format!("{name} {precision}")).collect()
        };
        assert_eq!(names(2.0), ["a lut4", "b lut4", "c lut4"]);
        assert_eq!(names(0.6), ["a lut4", "b lut8", "c lut4"]);
        assert_eq!(names(0.53), ["a lut4", "b lut8", "c lut8"]);
        assert_eq!(names(0.1), ["a lut4", "c lut8"]);
        assert_eq!(names(0.0), [""; 0]);
    }

    #[test]
    fn a_palette_larger_than_fp16_is_no_step() {
        let choices = vec![
            Choice { precision: WeightPrecision::Fp16, bytes: 10, loss: 0.0 },
            Choice { precision: WeightPrecision::Lut8, bytes: 20, loss: 0.1 },
        ];
        assert!(within(&[Candidate { tensor: "a".into(), choices }], 1.0).is_empty());
    }
}
