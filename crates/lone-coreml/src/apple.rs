//! Core ML itself: nothing but calls, one a function, and what keeps them safe.
//!
//! Objective-C exceptions become faults, every call has an autorelease pool of its own, and completion handlers are
//! waited for. C++ exceptions, which Core ML should not let out, end the process. Decisions are made elsewhere: this part runs on macOS only, where tests are dear.

mod array;
mod features;
mod function;
mod plan;

use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::mpsc;

use block2::{DynBlock, RcBlock};
use lone_mil::{Signature, TensorType};
use objc2::rc::{Retained, autoreleasepool};
use objc2::{Message, exception};
use objc2_core_ml::{MLComputeUnits, MLModel, MLModelConfiguration};
use objc2_foundation::{NSError, NSProcessInfo, NSString, NSURL};

use crate::fault::Reason;
use crate::relocation::relocate;
use crate::{ComputeUnits, Device, Fault, Framework, PlacedOp, Selection, Unavailable};
use array::AppleArray;
use function::{AppleBackings, AppleFunction};

/// Errors beneath each other that are told.
const MOST_REASONS: usize = 6;

/// The Core ML of this Mac.
#[derive(Debug)]
pub struct System(());

impl System {
    /// Core ML is part of every macOS that lone runs on.
    ///
    /// # Errors
    /// Never; elsewhere always.
    pub fn new() -> Result<Self, Unavailable> {
        Ok(System(()))
    }
}

impl Framework for System {
    type Array = AppleArray;
    type Function = AppleFunction;
    type Backings = AppleBackings;

    fn system(&self) -> String {
        NSProcessInfo::processInfo().operatingSystemVersionString().to_string()
    }

    fn devices(&self) -> Result<Vec<Device>, Fault> {
        guarded(|| {
            // SAFETY: a plain getter of the class.
            let devices = unsafe { MLModel::availableComputeDevices() };
            Ok(devices.iter().map(|device| plan::kind(&device)).collect())
        })
    }

    fn compile(&self, package: &Path, compiled: &Path) -> Result<(), Fault> {
        guarded(|| {
            let url = directory_url(package)?;
            let begin = |handler: &DynBlock<dyn Fn(*mut NSURL, *mut NSError)>| {
                // SAFETY: both arguments are live objects; the handler takes what the method documents.
                unsafe { MLModel::compileModelAtURL_completionHandler(&url, handler) };
            };
            let temporary = completed(begin, |url: &NSURL| {
                url.to_file_path().ok_or_else(|| Fault("the compiled program has no path".into()))
            })?;
            // The compiler leaves its result in a temporary directory.
            relocate(&temporary, compiled).map_err(|error| {
                Fault(format!("cannot move {} to {}: {error}", temporary.display(), compiled.display()))
            })
        })
    }

    fn load(
        &self,
        compiled: &Path,
        function: &Selection,
        units: ComputeUnits,
    ) -> Result<AppleFunction, Fault> {
        guarded(|| {
            let url = directory_url(compiled)?;
            let configuration = configuration(function, units);
            // SAFETY: both arguments are live objects.
            let model = unsafe { MLModel::modelWithContentsOfURL_configuration_error(&url, &configuration) };
            let model = model.map_err(|error| fault_of(&error))?;
            AppleFunction::new(model, &function.signature)
        })
    }

    fn array(&self, ty: &TensorType) -> Result<AppleArray, Fault> {
        guarded(|| AppleArray::new(ty))
    }

    fn backings(&self, signature: &Signature, arrays: &[AppleArray]) -> Result<AppleBackings, Fault> {
        guarded(|| Ok(AppleBackings::new(signature, arrays)))
    }

    fn plan(
        &self,
        compiled: &Path,
        function: &Selection,
        units: ComputeUnits,
    ) -> Result<Vec<PlacedOp>, Fault> {
        guarded(|| plan::plan(&*directory_url(compiled)?, &configuration(function, units), &function.name))
    }
}

/// Runs `call` in an autorelease pool, and turns an Objective-C exception into a fault.
fn guarded<R>(call: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    // What an exception leaves half done is objects of this call, which nobody looks at again.
    let caught = autoreleasepool(|_| exception::catch(AssertUnwindSafe(call)));
    caught.unwrap_or_else(|exception| {
        let what =
            exception.map_or_else(|| "an exception without a name".into(), |thrown| thrown.to_string());
        Err(Fault(what))
    })
}

/// Calls `begin` with a completion handler and waits until that has been called. `take` makes of the object it is
/// given, on whatever thread, something that may leave that thread.
fn completed<T: Message, R: Send + 'static>(
    begin: impl FnOnce(&DynBlock<dyn Fn(*mut T, *mut NSError)>),
    take: impl Fn(&T) -> Result<R, Fault> + 'static,
) -> Result<R, Fault> {
    let (sender, receiver) = mpsc::channel();
    let handler = RcBlock::new(move |object: *mut T, error: *mut NSError| {
        // SAFETY: the handler is given null or an object that lives until it returns.
        let object = unsafe { object.as_ref() };
        // SAFETY: likewise.
        let error = unsafe { error.as_ref() };
        let result = match (object, error) {
            (Some(object), _) => guarded(|| take(object)),
            (None, Some(error)) => Err(fault_of(error)),
            (None, None) => Err(Fault("neither a result nor an error".into())),
        };
        // Nobody waits any more only if the call itself has thrown.
        sender.send(result).ok();
    });
    begin(&handler);
    // From now on only Core ML holds the handler, so that one which is never called ends the wait as well.
    drop(handler);
    receiver.recv().unwrap_or_else(|_| Err(Fault("no answer".into())))
}

fn configuration(function: &Selection, units: ComputeUnits) -> Retained<MLModelConfiguration> {
    // SAFETY: a plain initialiser.
    let configuration = unsafe { MLModelConfiguration::new() };
    let units = match units {
        ComputeUnits::CpuAndNeuralEngine => MLComputeUnits::CPUAndNeuralEngine,
        ComputeUnits::CpuAndGpu => MLComputeUnits::CPUAndGPU,
        ComputeUnits::CpuOnly => MLComputeUnits::CPUOnly,
        ComputeUnits::All => MLComputeUnits::All,
    };
    // SAFETY: a plain setter, with one of the values of the enumeration.
    unsafe { configuration.setComputeUnits(units) };
    if !function.is_default {
        let name = NSString::from_str(&function.name);
        // SAFETY: a plain setter; the string is copied.
        unsafe { configuration.setFunctionName(Some(&name)) };
    }
    configuration
}

fn directory_url(path: &Path) -> Result<Retained<NSURL>, Fault> {
    NSURL::from_directory_path(path)
        .ok_or_else(|| Fault(format!("{} cannot be written as a URL", path.display())))
}

fn fault_of(error: &NSError) -> Fault {
    let mut reasons = Vec::new();
    let mut next = Some(error.retain());
    while let Some(error) = next.filter(|_| reasons.len() < MOST_REASONS) {
        let what = error.localizedDescription().to_string();
        reasons.push(Reason { what, domain: error.domain().to_string(), code: error.code() });
        next = error.underlyingErrors().firstObject();
    }
    Fault::of(&reasons)
}
