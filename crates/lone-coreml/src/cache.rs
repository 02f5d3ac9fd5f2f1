//! Compiled programs on disk, so that a package is compiled once.
//!
//! ```text
//! ROOT/
//!   KEY/model.mlmodelc     KEY: hash of the package's content and of the values that are to be seen
//!   KEY/refused            what this system could not do with it even when it was new
//!   compiling-KEY-…/       while it is compiled; renamed when it is complete
//!   locks/KEY              who uses it, and when it was last used
//!   known/                 hashes of packages that have not changed
//! ```
//! Core ML keeps what it specialises for the device under the path of the `.mlmodelc`, so the path must stay the same. Each holds a
//! copy of the weights: what has not been used for long is removed whenever something is compiled.

mod lock;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lone_mil::Keep;
use lone_mil::package::Package;

use crate::{CoremlError, Fault, Framework, fingerprint, keep};
use lock::Lock;

const COMPILED: &str = "model.mlmodelc";
const KNOWN: &str = "known";
const REFUSED: &str = "refused";
const COMPILING: &str = "compiling-";
/// What has not been used for so long is removed.
const LONGEST_UNUSED: Duration = Duration::from_hours(30 * 24);

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
    /// Runs `load` on the compiled program, which is compiled if need be. If it was compiled before and cannot be loaded, it is compiled
    /// again and tried once more: it may have been damaged, or left by another version of the system. What `task` cannot do with it even
    /// when it is new is remembered, so that this system does not compile it again for that.
    ///
    /// # Errors
    /// As compiling has it; as `error` has it for a program that cannot be loaded even when new.
    pub(crate) fn load<F: Framework, T>(
        &self,
        framework: &F,
        task: &str,
        load: impl Fn(&Path) -> Result<T, Fault>,
        error: impl Fn(PathBuf, Fault) -> CoremlError,
    ) -> Result<T, CoremlError> {
        let lock = Lock::open(&self.root, &self.key)?;
        lock.share();
        let (compiled, found) = (self.compiled(), self.compiled_at());
        let mut first = None;
        if found.is_some() {
            match load(&compiled) {
                Ok(loaded) => return Ok(loaded),
                Err(fault) if self.is_refused(task, framework) => {
                    return Err(error(self.package.clone(), fault));
                }
                Err(fault) => first = Some(fault),
            }
        }
        lock.take();
        // Unless another process has compiled it meanwhile.
        if self.compiled_at() == found {
            self.compile(framework)?;
        }
        load(&compiled).map_err(|fault| {
            self.refuse(task, framework);
            error(self.package.clone(), fault.after("it was compiled again", first.as_ref()))
        })
    }

    fn dir(&self) -> PathBuf {
        self.root.join(&self.key)
    }

    fn compiled(&self) -> PathBuf {
        self.dir().join(COMPILED)
    }

    /// When the compiled program came to be; `None` if there is none.
    fn compiled_at(&self) -> Option<SystemTime> {
        let metadata = fs::metadata(self.compiled()).ok().filter(fs::Metadata::is_dir)?;
        Some(metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// Compiles the package, in the place of what is there. The caller has taken the lock.
    fn compile(&self, framework: &impl Framework) -> Result<(), CoremlError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| CoremlError::Io { path, source }
        };
        self.tidy();
        let prefix = format!("{COMPILING}{}-", self.key);
        let staging = tempfile::Builder::new().prefix(&prefix).tempdir_in(&self.root);
        let staging = staging.map_err(io(&self.root))?;
        let package = self.visible(staging.path())?;
        let result = staging.path().join("result");
        fs::create_dir(&result).map_err(io(&result))?;
        framework
            .compile(&package, &result.join(COMPILED))
            .map_err(|fault| CoremlError::Compile { package: self.package.clone(), fault })?;
        let dir = self.dir();
        // What is not refused any more does no harm there.
        fs::copy(dir.join(REFUSED), result.join(REFUSED)).ok();
        remove(&dir).and_then(|()| fs::rename(&result, &dir)).map_err(io(&dir))
    }

    /// Removes what killed processes left, and programs that have not been used for long. What cannot be removed may stay.
    fn tidy(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let (key, is_unfinished) = match name.strip_prefix(COMPILING) {
                Some(rest) => (rest.split('-').next().unwrap_or(rest), true),
                None if fingerprint::is_key(name) => (name, false),
                None => continue,
            };
            if key == self.key {
                if is_unfinished {
                    remove(&entry.path()).ok();
                }
                continue;
            }
            let Ok(lock) = Lock::open(&self.root, key) else { continue };
            let is_old = || lock.age().is_ok_and(|age| age > LONGEST_UNUSED);
            if lock.is_free() && (is_unfinished || is_old()) {
                remove(&entry.path()).ok();
            }
        }
    }

    /// A line of the list of what was refused.
    fn refusal(task: &str, framework: &impl Framework) -> String {
        format!("{task} by {}", framework.system())
    }

    fn is_refused(&self, task: &str, framework: &impl Framework) -> bool {
        let list = fs::read_to_string(self.dir().join(REFUSED)).unwrap_or_default();
        let refusal = Self::refusal(task, framework);
        list.lines().any(|line| line == refusal)
    }

    /// Remembers that this system cannot do `task`. Who cannot remember compiles again.
    fn refuse(&self, task: &str, framework: &impl Framework) {
        let path = self.dir().join(REFUSED);
        let list = fs::read_to_string(&path).unwrap_or_default();
        fs::write(path, format!("{list}{}\n", Self::refusal(task, framework))).ok();
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

/// Removes a directory, if it is there.
fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
