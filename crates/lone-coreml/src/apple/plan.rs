//! Core ML's own account of where it means to run each operation.

use block2::DynBlock;
use objc2::rc::Retained;
use objc2::runtime::{AnyObject, ProtocolObject};
use objc2_core_ml::{
    MLCPUComputeDevice, MLComputeDeviceProtocol, MLComputePlan, MLGPUComputeDevice, MLModelConfiguration,
    MLModelStructureProgramOperation, MLNeuralEngineComputeDevice,
};
use objc2_foundation::{NSArray, NSError, NSString, NSURL};

use super::completed;
use crate::placement::{is_constant, plain_operator};
use crate::{Device, Fault, PlacedOp};

/// The plan of `function` of the compiled program at `url`.
pub(super) fn plan(
    url: &NSURL,
    configuration: &MLModelConfiguration,
    function: &str,
) -> Result<Vec<PlacedOp>, Fault> {
    let begin = |handler: &DynBlock<dyn Fn(*mut MLComputePlan, *mut NSError)>| {
        // SAFETY: live objects; the handler takes what the method documents.
        unsafe {
            MLComputePlan::loadContentsOfURL_configuration_completionHandler(url, configuration, handler);
        }
    };
    let function = function.to_owned();
    completed(begin, move |plan: &MLComputePlan| {
        Ok(operations(plan, &function)?.iter().filter_map(|op| placed(plan, &op)).collect())
    })
}

fn operations(
    plan: &MLComputePlan,
    function: &str,
) -> Result<Retained<NSArray<MLModelStructureProgramOperation>>, Fault> {
    // SAFETY: a plain getter.
    let structure = unsafe { plan.modelStructure() };
    // SAFETY: a plain getter.
    let program = unsafe { structure.program() };
    let program = program.ok_or_else(|| Fault("it is not an ML Program".into()))?;
    // SAFETY: a plain getter.
    let functions = unsafe { program.functions() };
    let function = functions
        .objectForKey(&NSString::from_str(function))
        .ok_or_else(|| Fault(format!("the plan has no function `{function}`")))?;
    // SAFETY: a plain getter.
    let block = unsafe { function.block() };
    // SAFETY: a plain getter.
    Ok(unsafe { block.operations() })
}

/// `None` for a constant, which runs nowhere.
fn placed(plan: &MLComputePlan, op: &MLModelStructureProgramOperation) -> Option<PlacedOp> {
    // SAFETY: a plain getter.
    let operator = unsafe { op.operatorName() }.to_string();
    let operator = plain_operator(&operator);
    if is_constant(operator) {
        return None;
    }
    // SAFETY: an operation of this plan's structure.
    let usage = unsafe { plan.computeDeviceUsageForMLProgramOperation(op) };
    // SAFETY: a plain getter.
    let device = usage.map(|usage| unsafe { usage.preferredComputeDevice() });
    // SAFETY: an operation of this plan's structure.
    let cost = unsafe { plan.estimatedCostOfMLProgramOperation(op) };
    // SAFETY: a plain getter.
    let cost = cost.map(|cost| unsafe { cost.weight() });
    // SAFETY: a plain getter.
    let output = unsafe { op.outputs() }.iter().next();
    // SAFETY: a plain getter.
    let name = output.map(|output| unsafe { output.name() }.to_string()).unwrap_or_default();
    let device = device.map_or(Device::Unknown, |device| kind(&device));
    Some(PlacedOp { name, operator: operator.into(), device, cost })
}

pub(super) fn kind(device: &ProtocolObject<dyn MLComputeDeviceProtocol>) -> Device {
    let object: &AnyObject = device.as_ref();
    if object.downcast_ref::<MLNeuralEngineComputeDevice>().is_some() {
        Device::NeuralEngine
    } else if object.downcast_ref::<MLGPUComputeDevice>().is_some() {
        Device::Gpu
    } else if object.downcast_ref::<MLCPUComputeDevice>().is_some() {
        Device::Cpu
    } else {
        Device::Unknown
    }
}
