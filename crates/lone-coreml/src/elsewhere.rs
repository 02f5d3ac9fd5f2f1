//! Where there is no Core ML: a framework that nobody can have.

use std::path::Path;

use lone_mil::{Signature, TensorType};

use crate::{
    Array, ComputeUnits, Device, Fault, Framework, Input, PlacedOp, Predict, Selection, Slot, Unavailable,
};

/// Core ML as macOS has it. There is none here, so no value of this type exists.
#[derive(Debug)]
pub enum System {}

impl System {
    /// Says that there is none.
    ///
    /// # Errors
    /// Always.
    pub fn new() -> Result<Self, Unavailable> {
        Err(Unavailable)
    }
}

impl Array for System {
    fn read(&self, _: &mut dyn FnMut(&[u8], &[usize])) -> Result<(), Fault> {
        match *self {}
    }

    fn write(&mut self, _: &mut dyn FnMut(&mut [u8], &[usize])) -> Result<(), Fault> {
        match *self {}
    }
}

impl Predict<System> for System {
    fn predict(&mut self, _: &[Input<'_, System>], _: &Slot<System>) -> Result<Vec<(usize, System)>, Fault> {
        match *self {}
    }
}

impl Framework for System {
    type Array = System;
    type Function = System;
    type Backings = System;

    fn system(&self) -> String {
        match *self {}
    }

    fn devices(&self) -> Result<Vec<Device>, Fault> {
        match *self {}
    }

    fn compile(&self, _: &Path, _: &Path) -> Result<(), Fault> {
        match *self {}
    }

    fn load(&self, _: &Path, _: &Selection, _: ComputeUnits) -> Result<System, Fault> {
        match *self {}
    }

    fn array(&self, _: &TensorType) -> Result<System, Fault> {
        match *self {}
    }

    fn backings(&self, _: &Signature, _: &[System]) -> Result<System, Fault> {
        match *self {}
    }

    fn plan(&self, _: &Path, _: &Selection, _: ComputeUnits) -> Result<Vec<PlacedOp>, Fault> {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_where_core_ml_is_and_where_this_is() {
        let message = System::new().unwrap_err().to_string();
        assert_eq!(message, format!("Core ML is part of macOS, and this is {}", std::env::consts::OS));
    }
}
