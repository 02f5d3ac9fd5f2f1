//! A loaded function with the arrays it reads and writes, bound to the buffers of its caller.
//!
//! Whole pages of the caller, its caches, are read where they lie. Everything else is copied into arrays of the
//! framework's making, which may be strided. Outputs go to a ring of arrays, so that what one pass wrote is still
//! there while the next one writes.

use lone_mil::{Signature, TensorMut, TensorRef};

use crate::in_place::is_read_in_place;
use crate::{CoremlError, Fault, Framework, Input, Predict, Slot, strided};

/// Sets of output arrays.
const RING: usize = 2;

/// A function ready to run.
pub(crate) struct Bound<F: Framework> {
    function: F::Function,
    /// One an input, made when a copy is first needed.
    inputs: Vec<Option<F::Array>>,
    ring: [Slot<F>; RING],
    /// Which set is written next.
    next: usize,
}

impl<F: Framework> Bound<F> {
    /// Makes the arrays for `function`, called `name`.
    ///
    /// # Errors
    /// [`CoremlError::Array`], naming the output there is none for.
    pub(crate) fn new(
        framework: &F,
        function: F::Function,
        name: &str,
        signature: &Signature,
    ) -> Result<Self, CoremlError> {
        let refused = |port: &str, fault| CoremlError::Array {
            function: name.to_owned(),
            port: port.to_owned(),
            fault,
        };
        let slot = || -> Result<Slot<F>, CoremlError> {
            let arrays = signature
                .outputs
                .iter()
                .map(|port| framework.array(&port.ty).map_err(|fault| refused(&port.name, fault)));
            let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
            let backings = framework.backings(signature, &arrays);
            Ok(Slot { backings: backings.map_err(|fault| refused("all outputs", fault))?, arrays })
        };
        let inputs = signature.inputs.iter().map(|_| None).collect();
        Ok(Bound { function, inputs, ring: [slot()?, slot()?], next: 0 })
    }

    /// Runs once. The buffers fit `signature`.
    ///
    /// # Errors
    /// Whatever went wrong, by port if it was at one.
    pub(crate) fn run(
        &mut self,
        framework: &F,
        signature: &Signature,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), Fault> {
        for ((array, port), data) in self.inputs.iter_mut().zip(&signature.inputs).zip(inputs) {
            if is_read_in_place(data) {
                continue;
            }
            let at_port = |fault| Fault(format!("input `{}`: {fault}", port.name));
            let array = match array {
                Some(array) => array,
                None => array.insert(framework.array(&port.ty).map_err(at_port)?),
            };
            strided::fill(array, data, &port.ty).map_err(at_port)?;
        }
        let bound = self.inputs.iter().zip(&signature.inputs).zip(inputs);
        let bound: Vec<_> = bound
            .map(|((array, port), data)| match array {
                Some(array) if !is_read_in_place(data) => Input::Own(array),
                _ => Input::InPlace(*data, &port.ty),
            })
            .collect();
        let slot = &self.ring[self.next];
        let elsewhere = self.function.predict(&bound, slot)?;
        for (index, (output, port)) in outputs.iter_mut().zip(&signature.outputs).enumerate() {
            let moved = elsewhere.iter().find(|(moved, _)| *moved == index);
            let array = moved.map_or(&slot.arrays[index], |(_, array)| array);
            strided::take(array, output, &port.ty)
                .map_err(|fault| Fault(format!("output `{}`: {fault}", port.name)))?;
        }
        self.next = (self.next + 1) % RING;
        Ok(())
    }
}
