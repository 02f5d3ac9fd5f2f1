//! Is the bundle whole? Consistency of the description, sizes at load, hashes on request.

use std::fs::File;
use std::io::Read;
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

/// A file whose content is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct HashFailure {
    pub path: String,
    pub expected: String,
    pub found: String,
}

impl Bundle {
    /// Hashes every file of the bundle in `dir`, calls `progress` with the bytes of each piece read, and returns
    /// the files whose hash differs.
    ///
    /// # Errors
    /// [`BundleError::Io`] or [`BundleError::MissingFile`] for a file that cannot be read.
    pub fn check_hashes(
        &self,
        dir: &Path,
        mut progress: impl FnMut(u64),
    ) -> Result<Vec<HashFailure>, BundleError> {
        let mut failures = Vec::new();
        for entry in &self.files {
            let found = hash_file(&dir.join(&entry.path), &mut progress)?;
            if found != entry.blake3 {
                let (path, expected) = (entry.path.clone(), entry.blake3.clone());
                failures.push(HashFailure { path, expected, found });
            }
        }
        Ok(failures)
    }

    pub(crate) fn check_sizes(&self, dir: &Path) -> Result<(), BundleError> {
        for entry in &self.files {
            let path = dir.join(&entry.path);
            let Ok(metadata) = std::fs::metadata(&path) else {
                return Err(BundleError::MissingFile { path });
            };
            if metadata.len() != entry.bytes {
                return Err(BundleError::FileSize { path, expected: entry.bytes, found: metadata.len() });
            }
        }
        Ok(())
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
