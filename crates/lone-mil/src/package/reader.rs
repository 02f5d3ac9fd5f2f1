//! Opens a package and checks all of it: manifest, blobs, messages, description, and every operation.

use std::fs;
use std::path::{Path, PathBuf};

use prost::Message;

use crate::proto::model;
use crate::{Arg, BlobError, BlobFile, Function, Literal, Payload, Program};

use super::decode::decode_model;
use super::encode::op_place;
use super::error::{Fault, verify_at};
use super::manifest::Manifest;
use super::{Metadata, PackageError, WEIGHTS_FILE};

/// A model file larger than this is refused unread. Programs are a few megabytes: their weights lie elsewhere.
const MAX_MODEL_BYTES: u64 = 1 << 26;
/// Where a program's blobs are, seen from the folder of its model file.
const WEIGHTS_FOLDER: &str = "weights";

/// A package that has been read: a program that is known to be good, and its weights, mapped.
#[derive(Debug)]
pub struct Package {
    /// The program. Its blobs are all in `blobs`, with the types it says.
    pub program: Program,
    /// `weight.bin`; empty if the package has none.
    pub blobs: BlobFile,
    /// What it says of itself.
    pub metadata: Metadata,
}

impl Package {
    /// Opens the `.mlpackage` directory `root`.
    ///
    /// # Errors
    /// [`PackageError`], naming the file and the place in it that is damaged, contradictory or not supported.
    pub fn open(root: &Path) -> Result<Self, PackageError> {
        let manifest = Manifest::open(root)?;
        let model_path = root.join("Data").join(manifest.model_path());
        let model = read(&model_path)?;
        let (program, metadata) = decode(&model_path, &model)?;

        let folder = model_path.with_file_name(WEIGHTS_FOLDER);
        let path = folder.join(WEIGHTS_FILE);
        let needed = blob_literals(&program).next().is_some();
        let listed = manifest.weights_path().is_some_and(|item| root.join("Data").join(item) == folder);
        if needed && !listed {
            return Err(manifest.no_weights(root, &folder));
        }
        let blobs = if needed || path.exists() { BlobFile::open(path)? } else { BlobFile::empty(path) };
        check_blobs(&model_path, &program, &blobs)?;
        Ok(Package { program, blobs, metadata })
    }

    /// The same from the bytes of a model file and of a `weight.bin`; `name` is what errors call them.
    ///
    /// # Errors
    /// As [`Package::open`].
    pub fn from_bytes(name: impl Into<PathBuf>, model: &[u8], weights: &[u8]) -> Result<Self, PackageError> {
        let name = name.into();
        let (program, metadata) = decode(&name, model)?;
        let blobs = BlobFile::from_bytes(name.clone(), weights)?;
        check_blobs(&name, &program, &blobs)?;
        Ok(Package { program, blobs, metadata })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, PackageError> {
    let io = |source| PackageError::Io { action: "read", path: path.into(), source };
    let metadata = path.metadata().map_err(io)?;
    if !metadata.is_file() {
        return Err(Fault::new("model", "a file", "something else").of(path));
    }
    if metadata.len() > MAX_MODEL_BYTES {
        let expected = format_args!("at most {MAX_MODEL_BYTES} bytes").to_string();
        return Err(Fault::new("model", expected, metadata.len()).of(path));
    }
    fs::read(path).map_err(io)
}

fn decode(path: &Path, bytes: &[u8]) -> Result<(Program, Metadata), PackageError> {
    let model =
        model::Model::decode(bytes).map_err(|source| PackageError::Protobuf { path: path.into(), source })?;
    let (program, described, metadata) = decode_model(&model).map_err(|fault| fault.of(path))?;
    verify_at(path, &program)?;
    described.check(&program).map_err(|fault| fault.of(path))?;
    Ok((program, metadata))
}

/// Every literal that lies in a blob, with the place it is used.
fn blob_literals(program: &Program) -> impl Iterator<Item = (&Function, usize, u64, &Literal)> {
    program.functions.iter().flat_map(|function| {
        let args = function
            .ops
            .iter()
            .enumerate()
            .flat_map(|(index, op)| op.args.iter().map(move |arg| (index, arg)));
        args.filter_map(move |(index, arg)| match arg {
            Some(Arg::Literal(literal @ Literal { payload: Payload::Blob(offset), .. })) => {
                Some((function, index, *offset, literal))
            }
            _ => None,
        })
    })
}

/// Checks that every blob the program names is there and holds what the program says.
pub(super) fn check_blobs(path: &Path, program: &Program, blobs: &BlobFile) -> Result<(), PackageError> {
    for (function, index, offset, literal) in blob_literals(program) {
        blobs.data(offset, &literal.ty).map_err(|fault| wrong_blob(path, function, index, fault))?;
    }
    Ok(())
}

fn wrong_blob(path: &Path, function: &Function, index: usize, fault: BlobError) -> PackageError {
    let op = &function.ops[index];
    let place = format!("function `{}`: {}", function.name, op_place(index, op.spec.name, &op.name));
    PackageError::Weight { path: path.into(), place, fault: Box::new(fault) }
}
