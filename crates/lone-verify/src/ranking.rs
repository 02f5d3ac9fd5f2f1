//! The likeliest tokens by some logits.

use std::cmp::Ordering;

use serde::Serialize;

/// A token and its logit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ranked {
    /// The token.
    pub id: u32,
    /// Its logit.
    pub logit: f32,
}

/// The `count` likeliest tokens by `logits (V)`, likeliest first and the lowest id first among equals. What is not a
/// number is less than any.
pub fn likeliest(logits: &[f32], count: usize) -> Vec<Ranked> {
    let mut ranked: Vec<Ranked> =
        logits.iter().enumerate().map(|(id, &logit)| Ranked { id: id as u32, logit }).collect();
    let count = count.min(ranked.len());
    if count > 0 && count < ranked.len() {
        ranked.select_nth_unstable_by(count - 1, by_rank);
    }
    ranked.truncate(count);
    ranked.sort_unstable_by(by_rank);
    ranked
}

/// The likeliest token by `logits`, which are not empty.
pub(crate) fn argmax(logits: &[f32]) -> Ranked {
    let ranked = logits.iter().enumerate().map(|(id, &logit)| Ranked { id: id as u32, logit });
    ranked.min_by(by_rank).expect("a vocabulary has entries")
}

fn by_rank(a: &Ranked, b: &Ranked) -> Ordering {
    let key = |ranked: &Ranked| if ranked.logit.is_nan() { f32::NEG_INFINITY } else { ranked.logit };
    key(b).total_cmp(&key(a)).then(a.id.cmp(&b.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(logits: &[f32], count: usize) -> Vec<u32> {
        likeliest(logits, count).iter().map(|ranked| ranked.id).collect()
    }

    #[test]
    fn the_likeliest_come_first_and_of_equals_the_lowest_id() {
        let logits = [1.0, 3.0, -2.0, 3.0, 0.0];
        assert_eq!(ids(&logits, 3), [1, 3, 0]);
        assert_eq!(ids(&logits, 9), [1, 3, 0, 4, 2]);
        assert!(ids(&logits, 0).is_empty());
        assert_eq!(argmax(&logits), Ranked { id: 1, logit: 3.0 });
    }

    #[test]
    fn what_is_not_a_number_is_never_the_likeliest() {
        assert_eq!(ids(&[f32::NAN, -1.0, f32::INFINITY], 3), [2, 1, 0]);
        assert_eq!(argmax(&[-f32::NAN, -1.0]).id, 1);
    }
}
