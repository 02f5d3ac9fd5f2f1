//! `bundle.json`: what a converted model directory holds, and nothing else.
//!
//! ```text
//! bundles/NAME/
//!   bundle.json            this crate
//!   chunk_00.mlpackage …   contiguous layers, one function a shape, one set of weights
//!   head_00.mlpackage …    slices of the vocabulary
//!   embeddings.bin         (V, D) fp16
//!   tokenizer.json …       copied from the checkpoint
//! ```
//! Whoever runs a bundle finds every shape, name and binding here; no code parses names.

#![forbid(unsafe_code)]

mod check;
mod error;
mod graph;
mod model;
mod placement;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use check::{DamagedFile, FileDamage, FileEntry};
pub use error::BundleError;
pub use graph::{
    Binding, Cache, CacheKind, Graph, GraphFunction, GraphKind, LayerOutput, Port, Role, Rows, Span,
};
pub use model::{Embeddings, LayerKind, ModelFacts, Provenance, Rope, SamplingDefaults};
pub use placement::{FunctionPlacement, PlacedOp, Placement};

/// The schema this version writes, and the newest it reads.
pub const SCHEMA: u32 = 1;

/// Name of the file in the bundle's directory.
pub const FILE_NAME: &str = "bundle.json";

/// What it is called until it is complete. Whoever was killed meanwhile left it, and it means nothing.
pub const NEW_FILE_NAME: &str = ".bundle.json.new";

/// The content of `bundle.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bundle {
    /// Version of this schema.
    pub schema: u32,
    /// What the model is.
    pub model: ModelFacts,
    /// One entry per kind of rotary embedding the graphs take tables of.
    pub ropes: Vec<Rope>,
    /// The token embedding table.
    pub embeddings: Embeddings,
    /// What a session keeps between passes; [`Binding`]s refer to these by index.
    pub caches: Vec<Cache>,
    /// The chunks in layer order, then the heads in vocabulary order.
    pub graphs: Vec<Graph>,
    /// How the bundle came to be.
    pub provenance: Provenance,
    /// Where Core ML means to run it, if a Mac has been asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Every other file of the bundle, with size and hash.
    pub files: Vec<FileEntry>,
}

impl Bundle {
    /// As [`Bundle::open_description`], and checks that every file is there with the size it should have, and all but
    /// the weights with the hash: for those see [`Bundle::check_files`].
    ///
    /// # Errors
    /// [`BundleError`], naming the file or the field.
    pub fn open(dir: &Path) -> Result<Self, BundleError> {
        let bundle = Bundle::open_description(dir)?;
        bundle.check_all_but_weights(dir)?;
        Ok(bundle)
    }

    /// Reads `dir/bundle.json`, refuses schemas other than 1 to [`SCHEMA`], and checks that the description is
    /// consistent. No other file is looked at.
    ///
    /// # Errors
    /// [`BundleError`], naming `bundle.json` or the field.
    pub fn open_description(dir: &Path) -> Result<Self, BundleError> {
        let path = dir.join(FILE_NAME);
        let text = read_file(&path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => BundleError::NotABundle { dir: dir.into() },
            _ => BundleError::Io { path: path.clone(), source },
        })?;
        let json = |source| BundleError::Json { path: path.clone(), source };
        let SchemaOnly { schema } = serde_json::from_slice(&text).map_err(json)?;
        if schema > SCHEMA {
            return Err(BundleError::NewerSchema { found: schema, known: SCHEMA });
        }
        if schema == 0 {
            let (field, expected) = ("schema".to_owned(), format!("1 to {SCHEMA}"));
            return Err(BundleError::Inconsistent { field, expected, found: schema.to_string() });
        }
        let bundle: Bundle = serde_json::from_slice(&text).map_err(json)?;
        bundle.check_consistency()?;
        Ok(bundle)
    }

    /// Writes `dir/bundle.json`: whoever reads it meanwhile sees the old content or the new.
    ///
    /// # Errors
    /// [`BundleError::Io`] if it cannot be written, [`BundleError::Inconsistent`] if it should not be.
    pub fn save(&self, dir: &Path) -> Result<(), BundleError> {
        self.check_consistency()?;
        let path = dir.join(FILE_NAME);
        let mut text = serde_json::to_vec_pretty(self).expect("plain data serializes");
        text.push(b'\n');
        let new = dir.join(NEW_FILE_NAME);
        let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path));
        written.map_err(|source| BundleError::Io { path, source })
    }

    /// A hash of what decides what the caches of a session mean: the graphs, and every other file. Bundles of the same
    /// checkpoint, converted in the same way, have the same.
    pub fn identity(&self) -> String {
        let Bundle { ropes, embeddings, caches, graphs, files, .. } = self;
        let content = serde_json::to_vec(&(ropes, embeddings, caches, graphs, files));
        blake3::hash(&content.expect("plain data serializes")).to_hex().to_string()
    }

    /// The chunks, in layer order.
    pub fn chunks(&self) -> impl Iterator<Item = &Graph> {
        self.graphs.iter().filter(|graph| matches!(graph.kind, GraphKind::Chunk { .. }))
    }

    /// The heads, in vocabulary order.
    pub fn heads(&self) -> impl Iterator<Item = &Graph> {
        self.graphs.iter().filter(|graph| matches!(graph.kind, GraphKind::Head { .. }))
    }

    /// Cache bytes a session needs at context `ctx`.
    pub fn cache_bytes(&self, ctx: usize) -> u64 {
        self.caches.iter().map(|cache| cache.bytes(ctx)).sum()
    }

    /// Cache bytes each further token of context costs; rings and convolution windows cost none.
    pub fn cache_bytes_per_token(&self) -> u64 {
        self.caches.iter().map(|cache| cache.bytes(2) - cache.bytes(1)).sum()
    }

    /// The context lengths the chunks have functions for, ascending.
    pub fn contexts(&self) -> Vec<usize> {
        let mut all: Vec<usize> =
            self.chunks().flat_map(|graph| graph.functions.iter().map(|function| function.ctx)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Reads a regular file: nothing that could wait for somebody to write to it.
fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    std::fs::read(path)
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: u32,
}

#[cfg(test)]
mod tests;
