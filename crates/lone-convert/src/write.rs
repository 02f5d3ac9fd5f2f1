//! Fills a directory with what was planned, and remembers the hashes of what went through it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lone_bundle::{FileEntry, Graph, GraphKind};
use lone_lfm::{Checkpoint, regular_file};
use lone_mil::package::{Metadata, PackageWriter};
use lone_mil::{BlobError, BlobWriter, DType};

use crate::calibrate::Palettizer;
use crate::package::PackagePlan;
use crate::stream::{self, HashedFile};
use crate::weights::{Rectangle, Source};
use crate::workers::{self, Report};
use crate::{ConvertError, Progress};

/// The token embedding table.
pub(crate) const EMBEDDINGS_FILE: &str = "embeddings.bin";

/// Files of the checkpoint that a bundle takes along, where there are any.
pub(crate) const COMPANIONS: [&str; 5] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "generation_config.json",
];

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

    /// Writes the embedding table, (V,D) fp16, and chunk_00.mlpackage … head_00.mlpackage …; describes the packages.
    pub(crate) fn write_weights(
        &mut self,
        embeddings: Rectangle<'_>,
        packages: &[PackagePlan<'_>],
        palettizer: &Palettizer<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Vec<Graph>, ConvertError> {
        let names = package_names(packages);
        let mut files: Vec<_> =
            names.iter().zip(packages).map(|(name, plan)| WeightFile::Package { name, plan }).collect();
        // Palettes have workers of their own, on one matrix, and calibration goes through the layers in their order.
        let palettized = packages.iter().flat_map(|plan| &plan.sources).any(Source::is_palettized);
        let count = if palettized { 1 } else { workers::processors() };
        // The largest first, so that workers end at about the same time; or last what takes less time than it looks.
        files.insert(if palettized { files.len() } else { 0 }, WeightFile::Embeddings(embeddings));
        let hashes = workers::spread(&files, count, progress, |file, report| match file {
            WeightFile::Embeddings(table) => self.write_embeddings(table, report),
            WeightFile::Package { name, plan } => self.write_package(name, plan, palettizer, report),
        })?;
        self.hashes.extend(hashes);
        Ok(packages.iter().zip(names).map(|(plan, name)| plan.graph(name)).collect())
    }

    fn write_package(
        &self,
        name: &str,
        plan: &PackagePlan<'_>,
        palettizer: &Palettizer<'_>,
        report: &Report<'_>,
    ) -> Result<(PathBuf, String), ConvertError> {
        let package = PackageWriter::create(self.dir.join(name))?;
        let path = package.weights_path();
        let mut file = HashedFile::new(package.create_weights()?);
        write_blobs(&mut file, &path, &plan.sources, palettizer, report)?;
        let metadata = Metadata { version: env!("CARGO_PKG_VERSION").into(), ..Metadata::default() };
        package.finish(&plan.program, &metadata)?;
        Ok((path, file.hash()))
    }

    fn write_embeddings(
        &self,
        table: &Rectangle<'_>,
        report: &Report<'_>,
    ) -> Result<(PathBuf, String), ConvertError> {
        let path = self.dir.join(EMBEDDINGS_FILE);
        let file = File::create_new(&path).map_err(ConvertError::io("create", &path))?;
        let mut file = HashedFile::new(file);
        stream::convert(table, report, |bytes| {
            file.write_all(bytes).map_err(ConvertError::io("write", &path))
        })?;
        Ok((path, file.hash()))
    }

    /// Copies tokenizer, template and defaults.
    pub(crate) fn copy_companions(&self, checkpoint: &Checkpoint) -> Result<(), ConvertError> {
        for name in COMPANIONS {
            let (from, to) = (checkpoint.dir().join(name), self.dir.join(name));
            match regular_file::read(&from) {
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

/// A large file of the bundle.
enum WeightFile<'p, 'c> {
    Embeddings(Rectangle<'c>),
    Package { name: &'p str, plan: &'p PackagePlan<'c> },
}

fn package_names(packages: &[PackagePlan<'_>]) -> Vec<String> {
    let (mut chunks, mut heads) = (0.., 0..);
    let name = |plan: &PackagePlan<'_>| {
        let (kind, numbers) = match plan.kind {
            GraphKind::Chunk { .. } => ("chunk", &mut chunks),
            GraphKind::Head { .. } => ("head", &mut heads),
        };
        let number: usize = numbers.next().expect("there is always a next number");
        format!("{kind}_{number:02}.mlpackage")
    };
    packages.iter().map(name).collect()
}

/// Writes a `weight.bin`.
fn write_blobs(
    file: &mut HashedFile,
    path: &Path,
    sources: &[Source<'_>],
    palettizer: &Palettizer<'_>,
    report: &Report<'_>,
) -> Result<(), ConvertError> {
    let failed = |source: BlobError| ConvertError::Weights { path: path.into(), source: source.into() };
    let count: usize = sources.iter().map(Source::blobs).sum();
    let count = u32::try_from(count).expect("a package has fewer tensors than that");
    let mut writer = BlobWriter::new(file, count).map_err(failed)?;
    for source in sources {
        match source {
            Source::Plain(rectangle) => {
                let mut sink = writer.begin(DType::F16, rectangle.elements()).map_err(failed)?;
                stream::convert(rectangle, report, |bytes| sink.write(bytes).map_err(failed))?;
                sink.finish().map_err(failed)?;
            }
            Source::Palettized(matrix) => {
                let parts = palettizer.palettize(matrix, report)?;
                for (part, columns) in parts.iter().zip(&matrix.parts) {
                    let elements = matrix.rows.len() * columns.len();
                    writer.put(matrix.format.indices, elements, &part.indices).map_err(failed)?;
                    let tables = bytemuck::cast_slice(&part.tables);
                    writer.put(DType::F16, part.tables.len(), tables).map_err(failed)?;
                    report.advance(part.bytes())?;
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
