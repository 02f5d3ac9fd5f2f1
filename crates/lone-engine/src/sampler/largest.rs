//! The few largest of many numbers, in one pass over them and without sorting the rest.

use std::cmp::Ordering;

/// Values looked at together, before any of them is looked at alone.
pub(super) const LANES: usize = 16;

/// A value and where it stood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) value: f32,
    pub(crate) id: u32,
}

/// Writes the `count` largest of `values` to `largest`, largest first, the lowest index first among equals. Values of
/// minus infinity never count; none may be NaN.
pub(crate) fn largest(values: &[f32], count: usize, largest: &mut Vec<Ranked>) {
    largest.clear();
    if count == 0 {
        return;
    }
    // Candidates gather until there are twice as many as wanted; then the worse half goes, and the worst that stays is
    // what later values must exceed. An equal later value loses by its index.
    let mut threshold = f32::NEG_INFINITY;
    for (block, values) in values.chunks(LANES).enumerate() {
        if !values.iter().fold(false, |any, &value| any | (value > threshold)) {
            continue;
        }
        for (lane, &value) in values.iter().enumerate() {
            if value > threshold {
                largest.push(Ranked { value, id: (block * LANES + lane) as u32 });
            }
        }
        if largest.len() >= 2 * count {
            largest.select_nth_unstable_by(count - 1, by_rank);
            largest.truncate(count);
            threshold = largest[count - 1].value;
        }
    }
    largest.sort_unstable_by(by_rank);
    largest.truncate(count);
}

fn by_rank(a: &Ranked, b: &Ranked) -> Ordering {
    b.value.total_cmp(&a.value).then(a.id.cmp(&b.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_head_of_the_sorted_list(
            values in prop::collection::vec(
                few_values(), 0..200),
            count in 0usize..40,
        ) {
            let mut sorted: Vec<Ranked> =
                values.iter().enumerate().map(|(id, &value)| Ranked { value, id: id as u32 }).collect();
            sorted.retain(|ranked| ranked.value > f32::NEG_INFINITY);
            sorted.sort_by(|a, b| b.value.partial_cmp(&a.value).unwrap().then(a.id.cmp(&b.id)));
            sorted.truncate(count);
            let mut found = Vec::new();
            largest(&values, count, &mut found);
            prop_assert_eq!(found, sorted);
        }
    }

    /// Few distinct values, so that equals are common.
    fn few_values() -> impl Strategy<Value = f32> {
        prop_oneof![(-3i8..4).prop_map(f32::from), Just(f32::NEG_INFINITY), -10.0f32..10.0]
    }
}
