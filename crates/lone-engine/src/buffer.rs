//! The fp16 tensors the engine owns: caches, masks, tables, and what passes return.
//!
//! Every one of them is made here, so that memory a device prefers can take the place of ordinary memory.

use std::fmt;
use std::ops::{Deref, DerefMut};

use half::f16;
use lone_mil::{TensorMut, TensorRef};

use crate::RunError;

/// A dense row-major fp16 tensor; its shape is its owner's business.
#[derive(Clone)]
pub(crate) struct Buffer(Vec<f16>);

impl Buffer {
    /// `elements` zeros. Pages that are never written cost nothing.
    pub(crate) fn zeroed(elements: usize) -> Result<Self, RunError> {
        let out_of_memory = |()| RunError::Memory { bytes: 2 * elements as u64 };
        bytemuck::allocation::try_zeroed_vec(elements).map(Buffer).map_err(out_of_memory)
    }

    pub(crate) fn as_ref(&self) -> TensorRef<'_> {
        TensorRef::F16(&self.0)
    }

    pub(crate) fn as_mut(&mut self) -> TensorMut<'_> {
        TensorMut::F16(&mut self.0)
    }

    pub(crate) fn bytes(&self) -> u64 {
        2 * self.0.len() as u64
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} x fp16)", self.0.len())
    }
}

impl Deref for Buffer {
    type Target = [f16];

    fn deref(&self) -> &[f16] {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f16] {
        &mut self.0
    }
}
