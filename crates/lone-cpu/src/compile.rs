//! The compiler: MIL functions in, a [`Plan`] each out.
//!
//! ```text
//! import   operations brought to few forms      fuse     groups of them become one
//! lower    nodes become steps over buffers      place    buffers get places in the arena
//! ```
//! All functions of a model share one arena, so they are placed together, behind the constants of all.

mod constants;
mod fuse;
mod graph;
mod import;
pub(crate) mod kind;
mod lower;
mod memory;
mod palettes;
mod pattern;
#[cfg(test)]
mod print;
pub(crate) mod reference;
pub(crate) mod view;

use lone_mil::{BackendError, BlobFile, Function, Keep, Port, Signature};

pub(crate) use constants::Constants;
use graph::Graph;
use lower::Lowered;

use crate::kernels::VisibleKeys;
use crate::plan::Plan;

/// More working memory than any function that is meant seriously needs, in slots: 16 GiB.
const MAX_SLOTS: usize = 1 << 32;

/// What the compiler is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) fuse: bool,
    pub(crate) threads: usize,
}

/// The functions of one package while they are compiled.
pub(crate) struct Compiler<'a> {
    blobs: &'a BlobFile,
    options: Options,
    constants: Constants,
    lowered: Vec<(String, Signature, Lowered)>,
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(blobs: &'a BlobFile, options: Options) -> Self {
        Compiler { blobs, options, constants: Constants::default(), lowered: Vec::new() }
    }

    /// Compiles `function`, the values of `keep` among its outputs.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] naming what cannot be run, [`BackendError::NoValue`] for a value to keep that
    /// is not there.
    pub(crate) fn add(&mut self, function: &Function, keep: &[&Keep]) -> Result<(), BackendError> {
        let mut graph = import::import(function, keep, self.blobs)?;
        graph.drop_dead();
        if self.options.fuse {
            fuse::fuse(&mut graph);
            graph.drop_dead();
        }
        let lowered = lower::lower(&graph, self.blobs, &mut self.constants, self.options.threads)?;
        self.lowered.push((function.name.clone(), signature(&graph), lowered));
        Ok(())
    }

    /// The plans, the constants in front of their arena, and the length of the arena.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] for a function that needs too much memory.
    pub(crate) fn finish(self) -> Result<(Vec<Plan>, Constants, usize), BackendError> {
        let Compiler { constants, lowered, .. } = self;
        let mut plans = Vec::with_capacity(lowered.len());
        for (function, signature, Lowered { mut steps, buffers, masks }) in lowered {
            let slots = memory::place(&mut steps, constants.end(), constants.starts(), &buffers)
                .filter(|&slots| slots <= MAX_SLOTS)
                .ok_or_else(|| BackendError::Unsupported {
                    place: format!("function `{function}`"),
                    what: format!("working memory of more than {} bytes", MAX_SLOTS * size_of::<f32>()),
                })?;
            let visible = masks.into_iter().map(VisibleKeys::with_capacity).collect();
            plans.push(Plan { function, signature, steps, visible, slots });
        }
        let slots = plans.iter().map(|plan| plan.slots).fold(constants.end(), usize::max);
        Ok((plans, constants, slots))
    }
}

/// Something wrong with the package itself.
pub(crate) fn package_error(error: impl std::error::Error + Send + Sync + 'static) -> BackendError {
    BackendError::Package(Box::new(error))
}

fn signature(graph: &Graph) -> Signature {
    let port = |&id: &lone_mil::ValueId| {
        let value = graph.get(id);
        Port { name: value.name.clone(), ty: value.ty.clone() }
    };
    Signature {
        inputs: graph.inputs.iter().map(port).collect(),
        outputs: graph.outputs.iter().map(port).collect(),
    }
}
