//! A loaded function: what a prediction is given, and what is done with what it returns.

use std::ptr;

use lone_mil::{DType, Signature};
use objc2::rc::Retained;
use objc2::runtime::{AnyObject, ProtocolObject};
use objc2_core_ml::{MLFeatureProvider, MLModel, MLPredictionOptions};
use objc2_foundation::{NSDictionary, NSString};

use super::array::{AppleArray, Dense};
use super::features::Features;
use super::{System, fault_of, guarded};
use crate::{Fault, Input, Predict, Slot};

/// A model with one function selected.
pub struct AppleFunction {
    model: Retained<MLModel>,
    features: Retained<Features>,
    /// By input: what memory of the caller looks like.
    dense: Vec<Dense>,
    outputs: Vec<(Retained<NSString>, DType)>,
}

// SAFETY: Core ML's objects have no ties to a thread; Apple asks only that a model be used by one thread at a time, and
// a prediction takes `&mut self`.
unsafe impl Send for AppleFunction {}

/// Options that name the arrays to write.
pub struct AppleBackings(Retained<MLPredictionOptions>);

// SAFETY: options are not changed once they are made.
unsafe impl Send for AppleBackings {}

impl AppleBackings {
    pub(super) fn new(signature: &Signature, arrays: &[AppleArray]) -> Self {
        let names: Vec<_> = signature.outputs.iter().map(|port| NSString::from_str(&port.name)).collect();
        let names: Vec<&NSString> = names.iter().map(|name| &**name).collect();
        let objects: Vec<&AnyObject> = arrays.iter().map(object).collect();
        let backings = NSDictionary::<NSString, AnyObject>::from_slices(&names, &objects);
        // SAFETY: a plain initialiser.
        let options = unsafe { MLPredictionOptions::new() };
        // SAFETY: a dictionary from output names to multi-arrays, as the property is documented.
        unsafe { options.setOutputBackings(&backings) };
        AppleBackings(options)
    }
}

impl AppleFunction {
    pub(super) fn new(model: Retained<MLModel>, signature: &Signature) -> Result<Self, Fault> {
        let features = Features::new(signature.inputs.iter().map(|port| port.name.as_str()));
        let dense = signature.inputs.iter().map(|port| Dense::of(&port.ty)).collect::<Result<_, _>>()?;
        let outputs = signature.outputs.iter();
        let outputs = outputs.map(|port| (NSString::from_str(&port.name), port.ty.dtype)).collect();
        Ok(AppleFunction { model, features, dense, outputs })
    }

    /// Runs once, on memory that lives until this returns.
    fn run(
        &self,
        inputs: &[Input<'_, AppleArray>],
        slot: &Slot<System>,
    ) -> Result<Vec<(usize, AppleArray)>, Fault> {
        for (index, (input, dense)) in inputs.iter().zip(&self.dense).enumerate() {
            let value = match input {
                Input::Own(array) => array.value.clone(),
                // SAFETY: `predict` takes the array from the features before the memory can go. Inputs are never written.
                Input::InPlace(data, _) => unsafe { AppleArray::in_place(data, dense) }?.value,
            };
            self.features.set(index, Some(value));
        }
        let features = ProtocolObject::from_ref(&*self.features);
        // SAFETY: live objects; every array behind `features` outlives this call, which returns when all is read.
        let results = unsafe { self.model.predictionFromFeatures_options_error(features, &slot.backings.0) };
        let results = results.map_err(|error| fault_of(&error))?;
        let mut elsewhere = Vec::new();
        for (index, (name, dtype)) in self.outputs.iter().enumerate() {
            let array = output(&results, name)?;
            if !ptr::eq(&*array.array, &*slot.arrays[index].array) {
                if !array.holds(*dtype) {
                    return Err(Fault(format!("output `{name}` is not of {dtype}")));
                }
                elsewhere.push((index, array));
            }
        }
        Ok(elsewhere)
    }
}

impl Predict<System> for AppleFunction {
    fn predict(
        &mut self,
        inputs: &[Input<'_, AppleArray>],
        slot: &Slot<System>,
    ) -> Result<Vec<(usize, AppleArray)>, Fault> {
        let outcome = guarded(|| self.run(inputs, slot));
        // No array over the caller's memory outlives the pass, however it ended: other memory may soon be at the same address.
        (0..inputs.len()).for_each(|index| self.features.set(index, None));
        outcome
    }
}

fn object(array: &AppleArray) -> &AnyObject {
    &array.array
}

fn output(results: &ProtocolObject<dyn MLFeatureProvider>, name: &NSString) -> Result<AppleArray, Fault> {
    // SAFETY: live objects.
    let value = unsafe { results.featureValueForName(name) };
    // SAFETY: a plain getter.
    let array = value.and_then(|value| unsafe { value.multiArrayValue() });
    array.map(AppleArray::of).ok_or_else(|| Fault(format!("there is no output `{name}`")))
}
