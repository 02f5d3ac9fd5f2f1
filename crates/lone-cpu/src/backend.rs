//! The backend: opens packages, compiles them, and keeps the threads.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use lone_mil::package::Package;
use lone_mil::{Backend, BackendError, LoadOptions, Model, verify_function};

use crate::arena::Arena;
use crate::compile::{Compiler, Options, package_error};
use crate::model::CpuModel;
use crate::profile::Profile;
use crate::{Isa, Kernels, Pages, Pool, cores, int16, twelve_bits};

/// How to run on this CPU.
#[derive(Debug, Clone, Copy)]
pub struct CpuOptions {
    /// Threads to use; one per physical core if it is not said.
    pub threads: Option<NonZeroUsize>,
    /// The instruction set; the widest there is if it is not said.
    pub isa: Option<Isa>,
    /// Whether to fuse operations. Without, each runs as it is written.
    pub fuse: bool,
    /// Whether models keep account of the time of their steps.
    pub profile: bool,
    /// Whether weights are copied into memory of huge pages. They are read faster there, but take up memory that is
    /// neither shared with other processes nor given back under pressure.
    pub huge_pages: bool,
    /// Whether palettes, and what they are multiplied with, are rounded to thirteen bits where [`Isa::has_fast_int16`]. Logits then
    /// keep a cosine of 0.99999 to the exact ones.
    pub fast_int16: bool,
}

impl Default for CpuOptions {
    fn default() -> Self {
        CpuOptions {
            threads: None,
            isa: None,
            fuse: true,
            profile: false,
            huge_pages: false,
            fast_int16: false,
        }
    }
}

/// Runs ML Programs on this CPU. All its models share its threads.
pub struct CpuBackend {
    kernels: Kernels,
    pool: Arc<Pool>,
    options: CpuOptions,
}

impl CpuBackend {
    /// Starts the threads.
    pub fn new(options: CpuOptions) -> Self {
        let kernels = options.isa.map_or_else(Kernels::detect, Kernels::with_isa);
        let threads = options.threads.unwrap_or_else(cores::physical_cores);
        CpuBackend { kernels, pool: Arc::new(Pool::new(threads)), options }
    }

    /// Opens and compiles the `.mlpackage` at `package`, as [`Backend::load`] does.
    ///
    /// # Errors
    /// As [`Backend::load`].
    pub fn open(&self, package: &Path, options: &LoadOptions) -> Result<CpuModel, BackendError> {
        let package = Package::open(package).map_err(package_error)?;
        self.compile(package, options)
    }

    /// Compiles a package that has been read.
    ///
    /// # Errors
    /// As [`Backend::load`].
    pub fn compile(&self, package: Package, options: &LoadOptions) -> Result<CpuModel, BackendError> {
        let Package { program, mut blobs, .. } = package;
        let functions = program.chosen(&options.functions)?;
        let mut compiler =
            Compiler::new(&blobs, Options { fuse: self.options.fuse, threads: self.pool.threads() });
        for function in functions {
            verify_function(function).map_err(package_error)?;
            let keep = options.keep.iter().filter(|keep| keep.function == function.name);
            compiler.add(function, &keep.collect::<Vec<_>>())?;
        }
        let (mut plans, constants, slots) = compiler.finish()?;
        let mut arena = Arena::new(slots).ok_or_else(|| BackendError::Unsupported {
            place: "package".into(),
            what: format!("working memory of {} bytes", slots * size_of::<f32>()),
        })?;
        constants.fill(&blobs, arena.slots_mut()).map_err(package_error)?;
        if self.options.fast_int16 {
            int16::round(&mut plans, &blobs, self.kernels.isa());
        }
        let pages = if self.options.huge_pages { Pages::Huge } else { Pages::Usual };
        if pages == Pages::Huge {
            let unread = twelve_bits::bring(&mut plans, &blobs, self.kernels.isa(), &self.pool);
            let unread = unread.map_err(package_error)?;
            blobs = blobs.copied_to_huge_pages(&unread).map_err(package_error)?;
        }
        let profiles = self.options.profile.then(|| plans.iter().map(Profile::new).collect());
        Ok(CpuModel {
            plans,
            arena,
            blobs,
            kernels: self.kernels.for_pages(pages),
            pool: Arc::clone(&self.pool),
            profiles,
        })
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn load(&self, package: &Path, options: &LoadOptions) -> Result<Box<dyn Model>, BackendError> {
        Ok(Box::new(self.open(package, options)?))
    }
}
