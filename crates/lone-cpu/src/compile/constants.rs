//! The constants that stand in front of a model's arena, as f32 or i32, each once however many functions use it.
//!
//! Only what steps read element by element comes here: norm weights, taps, scalars. Matrices stay where they are
//! mapped.

use lone_mil::{BlobError, BlobFile, DType, Literal, Payload};

use crate::arena::{ALIGNMENT, Element};

/// Constants in the order of their places.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    literals: Vec<Literal>,
    /// The first slot of each.
    starts: Vec<usize>,
    /// Where the last one ends.
    end: usize,
}

impl Constants {
    /// The number of `literal`, which must be of an [`element`] type; `None` if there are too many to count.
    pub(crate) fn add(&mut self, literal: &Literal) -> Option<usize> {
        if let Some(known) = self.literals.iter().position(|known| known == literal) {
            return Some(known);
        }
        let start = self.end.checked_next_multiple_of(ALIGNMENT)?;
        self.end = start.checked_add(literal.ty.shape.checked_elements()?)?;
        self.starts.push(start);
        self.literals.push(literal.clone());
        Some(self.starts.len() - 1)
    }

    /// The first slot of each constant.
    pub(crate) fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// How many slots constant `number` has.
    pub(crate) fn slots(&self, number: usize) -> usize {
        self.literals[number].ty.shape.elements()
    }

    /// The first slot behind them all that values may take.
    pub(crate) fn end(&self) -> usize {
        self.end.next_multiple_of(ALIGNMENT)
    }

    /// Writes them to the front of `slots`.
    ///
    /// # Errors
    /// [`BlobError`] for a constant that is not in `blobs` as its type says.
    pub(crate) fn fill(&self, blobs: &BlobFile, slots: &mut [f32]) -> Result<(), BlobError> {
        for (literal, &start) in self.literals.iter().zip(&self.starts) {
            let literal = held(literal, blobs)?;
            let slots = &mut slots[start..start + literal.ty.shape.elements()];
            if let Some(numbers) = literal.to_floats() {
                slots.copy_from_slice(&numbers);
            } else if let Some(numbers) = literal.to_ints() {
                for (number, slot) in numbers.iter().zip(bytemuck::cast_slice_mut::<f32, i32>(slots)) {
                    *slot = *number as i32;
                }
            }
        }
        Ok(())
    }
}

/// The same literal with its bytes in the program, whether it was there or in the weight file.
///
/// # Errors
/// [`BlobError`] if it is not there as its type says.
pub(crate) fn held(literal: &Literal, blobs: &BlobFile) -> Result<Literal, BlobError> {
    match literal.payload {
        Payload::Blob(_) => Ok(Literal::from_bytes(literal.ty.clone(), blobs.bytes(literal)?)),
        Payload::Bytes(_) | Payload::Strings(_) => Ok(literal.clone()),
    }
}

/// What values of this type are in the arena, if steps can compute with them.
pub(crate) fn element(dtype: DType) -> Option<Element> {
    match dtype {
        DType::F16 | DType::F32 => Some(Element::F32),
        DType::Bool | DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32 => Some(Element::I32),
        _ => None,
    }
}
