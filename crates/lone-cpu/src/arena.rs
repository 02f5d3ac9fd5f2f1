//! The one buffer a model computes in: its constants in front, then the values of whichever function runs.
//!
//! A slot is four bytes and holds an f32, an i32 or two f16. A step borrows the spans it writes and reads the rest
//! around them, so that a plan with overlapping spans panics instead of computing something else.

use half::f16;

/// Slots a span begins at a multiple of: one cache line.
pub(crate) const ALIGNMENT: usize = 16;

/// A run of slots. Until the planner has given places to buffers, `start` counts from the beginning of `buffer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) buffer: BufferId,
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// What a span is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum BufferId {
    /// A constant of the model, alive all the time.
    Constant(usize),
    /// A buffer of one function, alive from its first writer to its last reader.
    Value(usize),
    /// Of an empty span.
    Nowhere,
}

/// What the slots of a buffer hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    F16,
    I32,
}

impl Element {
    /// Slots that `elements` of this type take.
    pub(crate) fn slots(self, elements: usize) -> usize {
        match self {
            Element::F32 | Element::I32 => elements,
            Element::F16 => elements.div_ceil(2),
        }
    }

    /// Bytes of one.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Element::F32 | Element::I32 => 4,
            Element::F16 => 2,
        }
    }
}

/// The slots themselves.
pub(crate) struct Arena {
    slots: Vec<f32>,
    first: usize,
    len: usize,
}

impl Arena {
    /// `len` zeroed slots; `None` if there is no memory for them.
    pub(crate) fn new(len: usize) -> Option<Self> {
        let with_room = len.checked_add(ALIGNMENT)?;
        Vec::<f32>::new().try_reserve_exact(with_room).ok()?;
        // The system hands out zeroed pages when they are first touched.
        let slots = vec![0.0f32; with_room];
        let first = slots.as_ptr().align_offset(ALIGNMENT * size_of::<f32>()).min(ALIGNMENT);
        Some(Arena { slots, first, len })
    }

    /// How many there are.
    pub(crate) fn slots(&self) -> usize {
        self.len
    }

    /// All slots, for filling in the constants.
    pub(crate) fn slots_mut(&mut self) -> &mut [f32] {
        &mut self.slots[self.first..self.first + self.len]
    }

    /// Borrows `writes`, which must not overlap, for writing and everything around them for reading.
    pub(crate) fn borrow<const N: usize>(&mut self, writes: [Span; N]) -> ([&mut [f32]; N], Reads<'_, N>) {
        let mut order: [usize; N] = std::array::from_fn(|i| i);
        order.sort_unstable_by_key(|&i| writes[i].start);
        let mut written: [&mut [f32]; N] = std::array::from_fn(|_| Default::default());
        let mut gaps: [Gap<'_>; N] = [Gap::default(); N];
        let (mut rest, mut at) = (self.slots_mut(), 0);
        for (gap, &i) in gaps.iter_mut().zip(&order) {
            let span = writes[i];
            let before = span.start.checked_sub(at).expect("the planner keeps written spans apart");
            let (free, after) = rest.split_at_mut(before);
            *gap = Gap { start: at, slots: free };
            (written[i], rest) = after.split_at_mut(span.len);
            at = span.start + span.len;
        }
        (written, Reads { gaps, last: Gap { start: at, slots: rest } })
    }
}

/// What may be read while some spans are written.
#[derive(Clone, Copy)]
pub(crate) struct Reads<'a, const N: usize> {
    gaps: [Gap<'a>; N],
    last: Gap<'a>,
}

#[derive(Clone, Copy, Default)]
struct Gap<'a> {
    start: usize,
    slots: &'a [f32],
}

impl<'a, const N: usize> Reads<'a, N> {
    /// The slots of `span`.
    ///
    /// # Panics
    /// If it overlaps a span being written.
    pub(crate) fn f32s(&self, span: Span) -> &'a [f32] {
        let gap = self.gaps.iter().chain([&self.last]).rev().find(|gap| gap.start <= span.start);
        let inside = gap.and_then(|gap| gap.slots.get(span.start - gap.start..)?.get(..span.len));
        inside.expect("the planner keeps what a step reads apart from what it writes")
    }

    /// The first `len` f16 in `span`.
    pub(crate) fn f16s(&self, span: Span, len: usize) -> &'a [f16] {
        &bytemuck::cast_slice(self.f32s(span))[..len]
    }

    /// The i32 in `span`.
    pub(crate) fn i32s(&self, span: Span) -> &'a [i32] {
        bytemuck::cast_slice(self.f32s(span))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: usize, len: usize) -> Span {
        Span { buffer: BufferId::Value(0), start, len }
    }

    #[test]
    fn what_lies_around_written_spans_can_be_read() {
        let mut arena = Arena::new(10).unwrap();
        for (i, slot) in arena.slots_mut().iter_mut().enumerate() {
            *slot = i as f32;
        }
        let ([late, early], reads) = arena.borrow([span(6, 2), span(1, 2)]);
        assert_eq!((late.to_vec(), early.to_vec()), (vec![6.0, 7.0], vec![1.0, 2.0]));
        assert_eq!(reads.f32s(span(0, 1)), [0.0]);
        assert_eq!(reads.f32s(span(3, 3)), [3.0, 4.0, 5.0]);
        assert_eq!(reads.f32s(span(8, 2)), [8.0, 9.0]);
    }

    #[test]
    #[should_panic(expected = "apart from what it writes")]
    fn reading_what_is_written_panics() {
        let mut arena = Arena::new(10).unwrap();
        let (_, reads) = arena.borrow([span(4, 2)]);
        reads.f32s(span(3, 2));
    }

    #[test]
    #[should_panic(expected = "keeps written spans apart")]
    fn writing_a_slot_twice_panics() {
        let _ = Arena::new(10).unwrap().borrow([span(4, 2), span(5, 2)]);
    }

    #[test]
    fn slots_begin_at_a_cache_line_and_hold_other_types() {
        let mut arena = Arena::new(3).unwrap();
        assert_eq!(arena.slots_mut().as_ptr().addr() % 64, 0);
        bytemuck::cast_slice_mut::<f32, i32>(arena.slots_mut()).copy_from_slice(&[-1, 7, 0x3c00_4000]);
        let (_, reads) = arena.borrow([]);
        assert_eq!(reads.i32s(span(0, 2)), [-1, 7]);
        assert_eq!(reads.f16s(span(2, 1), 2), [f16::from_f32(2.0), f16::from_f32(1.0)]);
        assert_eq!(Element::F16.slots(3), 2);
    }
}
