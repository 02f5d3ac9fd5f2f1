//! A loaded function: what a prediction is given, and what is done with what it returns.

use std::ptr::{self, NonNull};

use lone_mil::{DType, Signature, TensorRef, TensorType};
use objc2::rc::Retained;
use objc2::runtime::{AnyObject, ProtocolObject};
use objc2_core_ml::{MLFeatureProvider, MLFeatureValue, MLModel, MLPredictionOptions};
use objc2_foundation::{NSDictionary, NSString};

use super::array::{AppleArray, address};
use super::features::Features;
use super::{System, fault_of, guarded};
use crate::{Fault, Input, Predict, Slot};

/// Arrays over caches that are remembered for an input: about as many sessions take turns.
const REMEMBERED: usize = 8;

/// A model with one function selected.
pub struct AppleFunction {
    model: Retained<MLModel>,
    features: Retained<Features>,
    /// By input: arrays over memory of the caller, by where it begins.
    in_place: Vec<Vec<(NonNull<std::ffi::c_void>, Retained<MLFeatureValue>)>>,
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
    pub(super) fn new(model: Retained<MLModel>, signature: &Signature) -> Self {
        let features = Features::new(signature.inputs.iter().map(|port| port.name.as_str()));
        let outputs = signature.outputs.iter();
        let outputs = outputs.map(|port| (NSString::from_str(&port.name), port.ty.dtype)).collect();
        let in_place = signature.inputs.iter().map(|_| Vec::new()).collect();
        AppleFunction { model, features, in_place, outputs }
    }

    /// The value of input number `index` over `data`.
    fn value_in_place(
        &mut self,
        index: usize,
        data: &TensorRef<'_>,
        ty: &TensorType,
    ) -> Result<Retained<MLFeatureValue>, Fault> {
        let start = address(data);
        let known = &mut self.in_place[index];
        if let Some((_, value)) = known.iter().find(|(address, _)| *address == start) {
            return Ok(value.clone());
        }
        // SAFETY: a prediction reads it only when it is bound, and it is bound only to calls that borrow memory of this
        // address and, as the port's type says, of this extent. Inputs are never written.
        let array = unsafe { AppleArray::in_place(data, ty) }?;
        if known.len() == REMEMBERED {
            known.remove(0);
        }
        known.push((start, array.value.clone()));
        Ok(array.value)
    }
}

impl Predict<System> for AppleFunction {
    fn predict(
        &mut self,
        inputs: &[Input<'_, AppleArray>],
        slot: &Slot<System>,
    ) -> Result<Vec<(usize, AppleArray)>, Fault> {
        guarded(|| {
            for (index, input) in inputs.iter().enumerate() {
                let value = match input {
                    Input::Own(array) => array.value.clone(),
                    Input::InPlace(data, ty) => self.value_in_place(index, data, ty)?,
                };
                self.features.set(index, value);
            }
            let features = ProtocolObject::from_ref(&*self.features);
            // SAFETY: live objects; every array behind `features` outlives this call, which returns when all is read.
            let results =
                unsafe { self.model.predictionFromFeatures_options_error(features, &slot.backings.0) };
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
        })
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
