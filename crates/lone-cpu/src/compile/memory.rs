//! Places for buffers: those that are never alive together share slots.
//!
//! Larger buffers choose first, each the lowest place that is free for the whole of its life.

use crate::arena::{ALIGNMENT, BufferId, Span};
use crate::steps::{Access, Step};

/// The steps during which a buffer must keep its contents, first and last.
#[derive(Debug, Clone, Copy)]
struct Life {
    from: usize,
    to: usize,
}

/// Turns the spans of `steps` into places in the arena and returns where they end.
///
/// Values begin at slot `base`, behind the constants, which are at `constants`; `buffers` are the lengths of the
/// values. `None` if there are more slots than can be counted.
pub(crate) fn place(
    steps: &mut [Step],
    base: usize,
    constants: &[usize],
    buffers: &[usize],
) -> Option<usize> {
    let (starts, end) = pack(base, buffers, &lives(steps, buffers.len()))?;
    for step in steps {
        step.visit(&mut |span: &mut Span, _| {
            span.start += match span.buffer {
                BufferId::Constant(i) => constants[i],
                BufferId::Value(i) => starts[i],
                BufferId::Nowhere => 0,
            };
        });
    }
    Some(end)
}

fn lives(steps: &mut [Step], buffers: usize) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; buffers];
    for (now, step) in steps.iter_mut().enumerate() {
        step.visit(&mut |span: &mut Span, access| {
            let BufferId::Value(i) = span.buffer else { return };
            debug_assert!(
                lives[i].is_some() || access == Access::Write,
                "a buffer is written before it is read"
            );
            lives[i].get_or_insert(Life { from: now, to: now }).to = now;
        });
    }
    lives
}

fn pack(base: usize, buffers: &[usize], lives: &[Option<Life>]) -> Option<(Vec<usize>, usize)> {
    let mut starts = vec![base; buffers.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(buffers.len());
    let mut order: Vec<usize> = (0..buffers.len()).filter(|&i| lives[i].is_some()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(buffers[i]));
    let mut end = base;
    for i in order {
        let life = lives[i]?;
        let meets = |&&other: &&usize| {
            lives[other].is_some_and(|other| other.from <= life.to && life.from <= other.to)
        };
        let mut taken: Vec<(usize, usize)> = placed
            .iter()
            .filter(meets)
            .map(|&other| (starts[other], starts[other] + buffers[other]))
            .collect();
        taken.sort_unstable();
        let mut start = base;
        for (from, to) in taken {
            if from >= start.checked_add(buffers[i])? {
                break;
            }
            start = start.max(to.checked_next_multiple_of(ALIGNMENT)?);
        }
        starts[i] = start;
        end = end.max(start.checked_add(buffers[i])?);
        placed.push(i);
    }
    Some((starts, end))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn life(from: usize, to: usize) -> Option<Life> {
        Some(Life { from, to })
    }

    #[test]
    fn buffers_that_are_never_alive_together_share_slots() {
        let (starts, end) = pack(16, &[32, 20, 32], &[life(0, 1), life(1, 2), life(2, 3)]).unwrap();
        assert_eq!((starts, end), (vec![16, 48, 16], 68));
    }

    #[test]
    fn a_gap_is_filled_before_the_arena_grows() {
        let (starts, end) =
            pack(0, &[64, 48, 32, 16], &[life(0, 4), life(0, 1), life(0, 4), life(2, 3)]).unwrap();
        assert_eq!((starts, end), (vec![0, 64, 112, 64], 144));
    }

    proptest! {
        #[test]
        fn buffers_alive_together_never_overlap(
            buffers in vec((1usize..200, 0usize..40, 0usize..10), 1..60),
            base in 0usize..100,
        ) {
            let base = base * ALIGNMENT;
            let lens: Vec<usize> = buffers.iter().map(|&(len, ..)| len).collect();
            let lives: Vec<Option<Life>> =
                buffers.iter().map(|&(_, from, steps)| life(from, from + steps)).collect();
            let (starts, end) = pack(base, &lens, &lives).unwrap();
            for i in 0..lens.len() {
                prop_assert!(starts[i] >= base && starts[i] % ALIGNMENT == 0 && starts[i] + lens[i] <= end);
                for j in 0..i {
                    let (a, b) = (lives[i].unwrap(), lives[j].unwrap());
                    let together = a.from <= b.to && b.from <= a.to;
                    let apart = starts[i] + lens[i] <= starts[j] || starts[j] + lens[j] <= starts[i];
                    prop_assert!(!together || apart, "{i} and {j}");
                }
            }
        }
    }

    #[test]
    fn a_plan_beyond_counting_is_refused() {
        assert!(pack(0, &[usize::MAX - 8, 64], &[life(0, 1), life(0, 1)]).is_none());
    }
}
