//! The backend: reads packages, has them compiled, and says where their operations run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lone_mil::package::Package;
use lone_mil::{
    Backend, BackendError, DType, Function, Keep, LoadOptions, Model, Port, Signature, ValueId, ValueType,
};

use crate::cache::CompileCache;
use crate::model::{CoremlModel, Listener};
use crate::{
    ComputeUnits, CoremlError, Device, Fault, Framework, FunctionPlacement, Selection, System, Unavailable,
    keep,
};

/// How to use Core ML.
#[derive(Debug, Clone)]
pub struct CoremlOptions {
    /// Which processors it may use.
    pub units: ComputeUnits,
    /// Directory of compiled programs. It must stay where it is: Core ML keeps its own caches by path.
    pub cache: PathBuf,
}

/// Runs ML Programs with Core ML.
pub struct CoremlBackend<F: Framework = System> {
    framework: Arc<F>,
    units: ComputeUnits,
    cache: CompileCache,
    listener: Option<Listener>,
}

impl CoremlBackend<System> {
    /// The Core ML of this system.
    ///
    /// # Errors
    /// [`Unavailable`] where there is none.
    pub fn new(options: CoremlOptions) -> Result<Self, Unavailable> {
        System::new().map(|system| Self::with_framework(system, options))
    }
}

impl<F: Framework> CoremlBackend<F> {
    /// A backend on `framework`.
    pub fn with_framework(framework: F, options: CoremlOptions) -> Self {
        CoremlBackend {
            framework: Arc::new(framework),
            units: options.units,
            cache: CompileCache::new(options.cache),
            listener: None,
        }
    }

    /// Tells `listener` in a line when a function failed and went on after it was loaded anew.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Whether this machine has a Neural Engine that Core ML may use. A virtual machine has none.
    ///
    /// # Errors
    /// What Core ML said.
    pub fn has_neural_engine(&self) -> Result<bool, Fault> {
        Ok(self.framework.devices()?.contains(&Device::NeuralEngine))
    }

    /// Where Core ML means to run the operations of every function of the `.mlpackage` at `package`, which is compiled if need be.
    ///
    /// # Errors
    /// [`CoremlError`], naming the package and the function.
    pub fn placement(&self, package: &Path) -> Result<Vec<FunctionPlacement>, BackendError> {
        let program = Package::open(package).map_err(CoremlError::from)?.program;
        let entry = self.cache.entry(package, &[])?;
        let framework = self.framework.as_ref();
        let placement = |function: &Function| {
            let selection = selection(function, &program.default_function, &[])?;
            let task = format!("planning {} on {}", function.name, self.units.name());
            let ops = entry.load(
                framework,
                &task,
                |compiled| framework.plan(compiled, &selection, self.units),
                |package, fault| CoremlError::Plan { package, function: function.name.clone(), fault },
            )?;
            Ok(FunctionPlacement { function: function.name.clone(), ops })
        };
        program.functions.iter().map(placement).collect()
    }
}

impl<F: Framework> Backend for CoremlBackend<F> {
    fn name(&self) -> &'static str {
        "coreml"
    }

    /// As [`Backend::load`]: compiles the package unless that was done before, and loads the functions that are not
    /// lazy.
    ///
    /// # Errors
    /// As [`Backend::load`]; what Core ML refuses is a [`BackendError::Package`].
    fn load(&self, package: &Path, options: &LoadOptions) -> Result<Box<dyn Model>, BackendError> {
        let program = Package::open(package).map_err(CoremlError::from)?.program;
        // What cannot be kept is refused before anything is compiled.
        keep::make_outputs(&mut program.functions.clone(), &options.keep)?;
        let chosen = program.chosen(&options.functions)?;
        let default = &program.default_function;
        let selections = chosen.iter().map(|function| selection(function, default, &options.keep));
        let selections = selections.collect::<Result<Vec<_>, _>>()?;
        let at_once = |selection: &Selection| !options.lazy.contains(&selection.name);
        let at_once: Vec<usize> = (0..selections.len()).filter(|&i| at_once(&selections[i])).collect();
        let entry = self.cache.entry(package, &options.keep)?;
        let mut model = CoremlModel::new(
            Arc::clone(&self.framework),
            self.units,
            entry,
            selections,
            self.listener.clone(),
        );
        for index in at_once {
            model.load(index)?;
        }
        Ok(Box::new(model))
    }
}

/// `function` with those values of `keep` that are in it as further outputs; all of them are there.
fn selection(function: &Function, default: &str, keep: &[Keep]) -> Result<Selection, BackendError> {
    let ports = |ids: &[ValueId]| ids.iter().map(|&id| port(function, id)).collect::<Result<Vec<_>, _>>();
    let kept = keep.iter().filter(|keep| keep.function == function.name);
    let kept: Vec<_> = kept.filter_map(|keep| function.value_named(&keep.value)).collect();
    let outputs = [&function.outputs[..], &kept].concat();
    Ok(Selection {
        name: function.name.clone(),
        is_default: function.name == default,
        signature: Signature { inputs: ports(&function.inputs)?, outputs: ports(&outputs)? },
    })
}

fn port(function: &Function, id: ValueId) -> Result<Port, BackendError> {
    let value = function.value(id);
    let unsupported = |what: String| BackendError::Unsupported {
        place: format!("function `{}`, `{}`", function.name, value.name),
        what,
    };
    match &value.ty {
        ValueType::Tensor(ty) if ty.shape.is_empty() => {
            Err(unsupported(format!("{ty}, a scalar, as an input or output")))
        }
        ValueType::Tensor(ty) if matches!(ty.dtype, DType::F16 | DType::F32 | DType::I32) => {
            Ok(Port { name: value.name.clone(), ty: ty.clone() })
        }
        ty => Err(unsupported(format!("{ty} as an input or output"))),
    }
}
