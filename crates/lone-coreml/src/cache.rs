//! Compiled programs on disk, so that a package is compiled once.
//!
//! ```text
//! ROOT/
//!   KEY/model.mlmodelc     KEY: hash of the package's content and of the values that are to be seen
//!   known/                 hashes of packages that have not changed
//! ```
//! Core ML keeps what it specialises for the device under the path of the `.mlmodelc`, so the path must stay the same. A program is compiled in
//! a directory of its own and renamed when it is complete; if another process was faster, its result is used.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lone_mil::Keep;
use lone_mil::package::Package;

use crate::{CoremlError, Fault, Framework, fingerprint, keep};

const COMPILED: &str = "model.mlmodelc";
const KNOWN: &str = "known";

/// Where compiled programs are kept.
#[derive(Debug, Clone)]
pub(crate) struct CompileCache {
    root: PathBuf,
}

/// A package, and where its compiled form is or will be.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    package: PathBuf,
    keep: Vec<Keep>,
    root: PathBuf,
    key: String,
}

impl CompileCache {
    pub(crate) fn new(root: PathBuf) -> Self {
        CompileCache { root }
    }

    /// The entry of `package` with the values of `keep` visible.
    ///
    /// # Errors
    /// [`CoremlError::Io`] if the package cannot be read.
    pub(crate) fn entry(&self, package: &Path, keep: &[Keep]) -> Result<Entry, CoremlError> {
        let key = fingerprint::key(package, keep, &self.root.join(KNOWN))?;
        Ok(Entry { package: package.into(), keep: keep.to_vec(), root: self.root.clone(), key })
    }
}

impl Entry {
    /// Where the compiled program is.
    pub(crate) fn compiled(&self) -> PathBuf {
        self.root.join(&self.key).join(COMPILED)
    }

    /// Compiles the package unless that has been done. Returns whether it had been.
    ///
    /// # Errors
    /// [`CoremlError`], naming the package or the file.
    pub(crate) fn ensure(&self, framework: &impl Framework) -> Result<bool, CoremlError> {
        if self.compiled().is_dir() {
            return Ok(true);
        }
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| CoremlError::Io { path, source }
        };
        fs::create_dir_all(&self.root).map_err(io(&self.root))?;
        let staging = tempfile::Builder::new().prefix("compiling-").tempdir_in(&self.root);
        let staging = staging.map_err(io(&self.root))?;
        let package = self.visible(staging.path())?;
        let result = staging.path().join("result");
        fs::create_dir(&result).map_err(io(&result))?;
        framework
            .compile(&package, &result.join(COMPILED))
            .map_err(|fault| CoremlError::Compile { package: self.package.clone(), fault })?;
        let entry = self.root.join(&self.key);
        match fs::rename(&result, &entry) {
            Err(_) if self.compiled().is_dir() => Ok(false),
            Err(source) => Err(CoremlError::Io { path: entry, source }),
            Ok(()) => Ok(false),
        }
    }

    /// Does away with the compiled program.
    ///
    /// # Errors
    /// [`CoremlError::Io`] if it cannot be removed.
    pub(crate) fn forget(&self) -> Result<(), CoremlError> {
        let path = self.root.join(&self.key);
        match fs::remove_dir_all(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(CoremlError::Io { path, source }),
            _ => Ok(()),
        }
    }

    /// Runs `load` on the compiled program. If that was compiled before and cannot be loaded, it is compiled again and
    /// tried once more: it may have been damaged, or left by another version of the system.
    ///
    /// # Errors
    /// As compiling has it; as `error` has it for a program that cannot be loaded even when new.
    pub(crate) fn load<F: Framework, T>(
        &self,
        framework: &F,
        load: impl Fn(&Path) -> Result<T, Fault>,
        error: impl Fn(PathBuf, Fault) -> CoremlError,
    ) -> Result<T, CoremlError> {
        let was_there = self.ensure(framework)?;
        let mut loaded = load(&self.compiled());
        if loaded.is_err() && was_there {
            self.forget()?;
            self.ensure(framework)?;
            loaded = load(&self.compiled());
        }
        loaded.map_err(|fault| error(self.package.clone(), fault))
    }

    /// The package to compile: itself, or a copy in `dir` that returns more values.
    fn visible(&self, dir: &Path) -> Result<PathBuf, CoremlError> {
        if self.keep.is_empty() {
            return Ok(self.package.clone());
        }
        let mut package = Package::open(&self.package)?;
        keep::make_outputs(&mut package.program.functions, &self.keep)
            .expect("the backend has found these values in this package");
        keep::write_copy(&package, dir)
    }
}
