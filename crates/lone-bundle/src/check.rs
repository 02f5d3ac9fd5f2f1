//! Is the bundle whole? Consistency of the description, sizes and small files' hashes at load, all hashes on request.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::{Binding, Bundle, BundleError, GraphKind};

/// A file of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path in the bundle, `/` between components.
    pub path: String,
    /// Size.
    pub bytes: u64,
    /// BLAKE3 of its content, in hex.
    pub blake3: String,
}

/// A file that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// Path in the bundle, as in [`FileEntry::path`].
    pub path: String,
    /// How it differs.
    pub damage: FileDamage,
}

/// How a file differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FileDamage {
    Missing,
    /// In bytes.
    Size {
        expected: u64,
        found: u64,
    },
    /// BLAKE3, in hex.
    Hash {
        expected: String,
        found: String,
    },
}

impl Bundle {
    /// Compares every file of the bundle in `dir` with its size and hash, calls `progress` with the bytes of each
    /// piece read, and returns those that are missing or differ. What has another size is not hashed.
    ///
    /// # Errors
    /// [`BundleError::Io`] for a file that is there and cannot be read.
    pub fn check_files(
        &self,
        dir: &Path,
        mut progress: impl FnMut(u64),
    ) -> Result<Vec<DamagedFile>, BundleError> {
        let mut damaged = Vec::new();
        for entry in &self.files {
            let damage = match entry.size_damage(dir)? {
                None => entry.hash_damage(dir, &mut progress)?,
                damage => damage,
            };
            damaged.extend(damage.map(|damage| DamagedFile { path: entry.path.clone(), damage }));
        }
        Ok(damaged)
    }

    /// Compares every file with its size, and all but the weights, which are many times larger than the rest, with
    /// their hashes.
    pub(crate) fn check_all_but_weights(&self, dir: &Path) -> Result<(), BundleError> {
        for entry in &self.files {
            let path = dir.join(&entry.path);
            let damage = match entry.size_damage(dir)? {
                None if !self.holds_weights(entry) => entry.hash_damage(dir, &mut |_| {})?,
                damage => damage,
            };
            match damage {
                Some(FileDamage::Size { expected, found }) => {
                    return Err(BundleError::FileSize { path, expected, found });
                }
                Some(FileDamage::Missing) => return Err(BundleError::MissingFile { path }),
                Some(FileDamage::Hash { .. }) => return Err(BundleError::FileHash { path }),
                None => {}
            }
        }
        Ok(())
    }

    fn holds_weights(&self, entry: &FileEntry) -> bool {
        entry.path == self.embeddings.file || entry.path.ends_with("/weight.bin")
    }

    /// Checks what the description says of itself: paths stay inside, indices are in range, chunks cover the
    /// layers and heads the vocabulary, in order and without gaps.
    pub(crate) fn check_consistency(&self) -> Result<(), BundleError> {
        let names = self.graphs.iter().map(|graph| &graph.package);
        for path in self.files.iter().map(|entry| &entry.path).chain([&self.embeddings.file]).chain(names) {
            let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
            require(inside && !path.is_empty(), "a file's path", "one inside the bundle", path)?;
        }
        let embeddings = (self.embeddings.rows, self.embeddings.columns);
        let expected = (self.model.vocab_size, self.model.hidden_size);
        require(embeddings == expected, "embeddings", &format!("{expected:?}"), &format!("{embeddings:?}"))?;
        let layers = self.graphs.iter().filter_map(|graph| match graph.kind {
            GraphKind::Chunk { layers } => Some(layers),
            GraphKind::Head { .. } => None,
        });
        let vocabulary = self.graphs.iter().filter_map(|graph| match graph.kind {
            GraphKind::Chunk { .. } => None,
            GraphKind::Head { vocabulary } => Some(vocabulary),
        });
        covers("chunks", layers, self.model.layers.len())?;
        covers("heads", vocabulary, self.model.vocab_size)?;
        self.check_indices()
    }

    fn check_indices(&self) -> Result<(), BundleError> {
        for cache in &self.caches {
            require_below("a cache's layer", cache.layer, self.model.layers.len())?;
        }
        for function in self.graphs.iter().flat_map(|graph| &graph.functions) {
            require(function.tokens > 0, &format!("{}: tokens", function.name), "at least 1", "0")?;
            for port in function.inputs.iter().chain(&function.outputs) {
                match port.binding {
                    Binding::Cos { rope } | Binding::Sin { rope } => {
                        require_below(&format!("{}: rope", port.name), rope, self.ropes.len())?;
                    }
                    Binding::Cache { cache, .. } | Binding::NewRows { cache } | Binding::Window { cache } => {
                        require_below(&format!("{}: cache", port.name), cache, self.caches.len())?;
                    }
                    Binding::Hidden | Binding::Mask { .. } | Binding::Logits => {}
                }
            }
        }
        Ok(())
    }
}

impl FileEntry {
    fn size_damage(&self, dir: &Path) -> Result<Option<FileDamage>, BundleError> {
        let path = dir.join(&self.path);
        let found = match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => metadata.len(),
            Ok(_) => return Ok(Some(FileDamage::Missing)),
            // What has a file above it is not there either.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Some(FileDamage::Missing));
            }
            Err(source) => return Err(BundleError::Io { path, source }),
        };
        let differs = found != self.bytes;
        Ok(differs.then_some(FileDamage::Size { expected: self.bytes, found }))
    }

    fn hash_damage(
        &self,
        dir: &Path,
        progress: &mut impl FnMut(u64),
    ) -> Result<Option<FileDamage>, BundleError> {
        let found = hash_file(&dir.join(&self.path), progress)?;
        let differs = found != self.blake3;
        Ok(differs.then(|| FileDamage::Hash { expected: self.blake3.clone(), found }))
    }
}

fn covers(field: &str, spans: impl Iterator<Item = crate::Span>, total: usize) -> Result<(), BundleError> {
    let mut next = 0;
    for span in spans {
        require(
            span.start == next && span.count > 0,
            field,
            &format!("one from {next} on"),
            &format!("{span:?}"),
        )?;
        next = span.start.saturating_add(span.count);
    }
    require(next == total, field, &format!("{total} in all"), &next.to_string())
}

fn require_below(field: &str, index: usize, count: usize) -> Result<(), BundleError> {
    require(index < count, field, &format!("an index below {count}"), &index.to_string())
}

fn require(holds: bool, field: &str, expected: &str, found: &str) -> Result<(), BundleError> {
    if holds {
        return Ok(());
    }
    Err(BundleError::Inconsistent { field: field.into(), expected: expected.into(), found: found.into() })
}

fn hash_file(path: &Path, progress: &mut impl FnMut(u64)) -> Result<String, BundleError> {
    let io = |source| BundleError::Io { path: path.into(), source };
    let mut file = File::open(path).map_err(io)?;
    let mut hasher = blake3::Hasher::new();
    let mut block = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut block).map_err(io)?;
        if read == 0 {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        hasher.update(&block[..read]);
        progress(read as u64);
    }
}
