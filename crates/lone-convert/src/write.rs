//! Fills a directory with what was planned, and remembers the hashes of what went through it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lone_bundle::{FileEntry, Graph, GraphKind};
use lone_lfm::Checkpoint;
use lone_mil::package::{Metadata, PackageWriter};
use lone_mil::{BlobError, BlobWriter, DType};

use crate::package::PackagePlan;
use crate::palette::palettize;
use crate::stream::{self, Outlet};
use crate::weights::{Rectangle, Source};
use crate::{ConvertError, Progress};

/// The token embedding table.
pub(crate) const EMBEDDINGS_FILE: &str = "embeddings.bin";

/// Files of the checkpoint that a bundle takes along, where there are any.
const COMPANIONS: [&str; 4] =
    ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"];

/// A bundle's directory being filled.
pub(crate) struct BundleFiles<'a> {
    dir: &'a Path,
    /// By path; known where a file was hashed as it was written.
    hashes: BTreeMap<PathBuf, String>,
}

impl<'a> BundleFiles<'a> {
    pub(crate) fn new(dir: &'a Path) -> Self {
        BundleFiles { dir, hashes: BTreeMap::new() }
    }

    /// Writes chunk_00.mlpackage … and head_00.mlpackage …, and describes them.
    pub(crate) fn write_packages(
        &mut self,
        packages: &[PackagePlan<'_>],
        progress: &mut dyn Progress,
    ) -> Result<Vec<Graph>, ConvertError> {
        let (mut chunks, mut heads) = (0, 0);
        let mut graphs = Vec::new();
        for plan in packages {
            let (kind, number) = match plan.kind {
                GraphKind::Chunk { .. } => ("chunk", &mut chunks),
                GraphKind::Head { .. } => ("head", &mut heads),
            };
            let name = format!("{kind}_{number:02}.mlpackage");
            *number += 1;
            self.write_package(&name, plan, progress)?;
            graphs.push(plan.graph(name));
        }
        Ok(graphs)
    }

    fn write_package(
        &mut self,
        name: &str,
        plan: &PackagePlan<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), ConvertError> {
        let package = PackageWriter::create(self.dir.join(name))?;
        let path = package.weights_path();
        let make = |outlet: &mut Outlet<'_>| write_blobs(outlet, &path, &plan.sources);
        let hash = stream::write_file(package.create_weights()?, &path, progress, make)?;
        self.hashes.insert(path, hash);
        let metadata = Metadata { version: env!("CARGO_PKG_VERSION").into(), ..Metadata::default() };
        Ok(package.finish(&plan.program, &metadata)?)
    }

    /// Writes the embedding table, (V,D) fp16.
    pub(crate) fn write_embeddings(
        &mut self,
        table: Rectangle<'_>,
        progress: &mut dyn Progress,
    ) -> Result<(), ConvertError> {
        let path = self.dir.join(EMBEDDINGS_FILE);
        let file = File::create_new(&path).map_err(ConvertError::io("create", &path))?;
        let write_to = |outlet: &mut Outlet<'_>| {
            stream::convert(&table, |bytes| outlet.write_all(bytes).map_err(ConvertError::io("write", &path)))
        };
        let hash = stream::write_file(file, &path, progress, write_to)?;
        self.hashes.insert(path, hash);
        Ok(())
    }

    /// Copies tokenizer, template and defaults.
    pub(crate) fn copy_companions(&self, checkpoint: &Checkpoint) -> Result<(), ConvertError> {
        for name in COMPANIONS {
            let (from, to) = (checkpoint.dir().join(name), self.dir.join(name));
            match fs::read(&from) {
                Ok(content) => fs::write(&to, content).map_err(ConvertError::io("write", &to))?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(ConvertError::Io { action: "read", path: from, source }),
            }
        }
        Ok(())
    }

    /// Size and hash of every file there is, in the order of their paths.
    pub(crate) fn list(&self) -> Result<Vec<FileEntry>, ConvertError> {
        let mut files = Vec::new();
        self.list_into(self.dir, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    fn list_into(&self, dir: &Path, files: &mut Vec<FileEntry>) -> Result<(), ConvertError> {
        let entries = fs::read_dir(dir).map_err(ConvertError::io("read", dir))?;
        for entry in entries {
            let path = entry.map_err(ConvertError::io("read", dir))?.path();
            let metadata = fs::metadata(&path).map_err(ConvertError::io("read", &path))?;
            if metadata.is_dir() {
                self.list_into(&path, files)?;
                continue;
            }
            let blake3 = match self.hashes.get(&path) {
                Some(hash) => hash.clone(),
                None => hash_file(&path)?,
            };
            let inside = path.strip_prefix(self.dir).expect("the walk began there");
            let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
            files.push(FileEntry { path: parts.join("/"), bytes: metadata.len(), blake3 });
        }
        Ok(())
    }
}

/// Writes a `weight.bin`.
fn write_blobs(outlet: &mut Outlet<'_>, path: &Path, sources: &[Source<'_>]) -> Result<(), ConvertError> {
    let failed = |source: BlobError| ConvertError::Weights { path: path.into(), source: source.into() };
    let abandoned = outlet.abandoned();
    let count: usize = sources.iter().map(Source::blobs).sum();
    let count = u32::try_from(count).expect("a package has fewer tensors than that");
    let mut writer = BlobWriter::new(outlet, count).map_err(failed)?;
    for source in sources {
        match source {
            Source::Plain(rectangle) => {
                let mut sink = writer.begin(DType::F16, rectangle.elements()).map_err(failed)?;
                stream::convert(rectangle, |bytes| sink.write(bytes).map_err(failed))?;
                sink.finish().map_err(failed)?;
            }
            Source::Palettized(matrix) => {
                let parts = palettize(matrix, abandoned).ok_or(ConvertError::Cancelled)?;
                for (part, columns) in parts.iter().zip(&matrix.parts) {
                    let elements = matrix.rows.len() * columns.len();
                    writer.put(matrix.format.indices, elements, &part.indices).map_err(failed)?;
                    let tables = bytemuck::cast_slice(&part.tables);
                    writer.put(DType::F16, part.tables.len(), tables).map_err(failed)?;
                }
            }
        }
    }
    writer.finish().map_err(failed)?;
    Ok(())
}

fn hash_file(path: &Path) -> Result<String, ConvertError> {
    let content = fs::read(path).map_err(ConvertError::io("read", path))?;
    Ok(blake3::hash(&content).to_hex().to_string())
}
