//! Writes a package: directories, then weights, then the model, and the manifest when all else is there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use prost::Message;

use crate::{BlobFile, Program};

use super::encode::encode_model;
use super::error::verify_at;
use super::manifest::{MANIFEST_FILE, Manifest};
use super::reader::check_blobs;
use super::{MODEL_ITEM, Metadata, PackageError, WEIGHTS_FILE, WEIGHTS_ITEM};

/// A package being written.
///
/// ```no_run
/// # use lone_mil::{package::{Metadata, PackageWriter}, BlobWriter, DType, Program};
/// # fn write(program: &Program, kernel: &[u8]) -> Result<(), lone_mil::package::PackageError> {
/// let package = PackageWriter::create("model.mlpackage")?;
/// let mut blobs = BlobWriter::new(package.create_weights()?, 1)?;
/// blobs.put(DType::F16, kernel.len() / 2, kernel)?;
/// blobs.finish()?;
/// package.finish(program, &Metadata::default())
/// # }
/// ```
#[derive(Debug)]
pub struct PackageWriter {
    root: PathBuf,
}

impl PackageWriter {
    /// Makes the directories of a package at `root`, where nothing may be yet.
    ///
    /// # Errors
    /// [`PackageError::Io`].
    pub fn create(root: impl Into<PathBuf>) -> Result<Self, PackageError> {
        let writer = PackageWriter { root: root.into() };
        fs::create_dir(&writer.root).map_err(PackageError::io("create", &writer.root))?;
        let weights = writer.item(WEIGHTS_ITEM);
        fs::create_dir_all(&weights).map_err(PackageError::io("create", &weights))?;
        Ok(writer)
    }

    /// Where the blobs belong. A program without any has no such file.
    pub fn weights_path(&self) -> PathBuf {
        self.item(WEIGHTS_ITEM).join(WEIGHTS_FILE)
    }

    /// Creates the file of the blobs, for a [`BlobWriter`](crate::BlobWriter).
    ///
    /// # Errors
    /// [`PackageError::Io`].
    pub fn create_weights(&self) -> Result<File, PackageError> {
        let path = self.weights_path();
        File::create_new(&path).map_err(PackageError::io("create", &path))
    }

    /// Writes the model and the manifest.
    ///
    /// # Errors
    /// [`PackageError::Program`] for a program that does not hold together, [`PackageError::Model`] for one that the
    /// format cannot express, [`PackageError::Weight`] for one whose blobs are not those written,
    /// [`PackageError::Io`].
    pub fn finish(self, program: &Program, metadata: &Metadata) -> Result<(), PackageError> {
        let path = self.item(MODEL_ITEM);
        verify_at(&path, program)?;
        self.check_weights(&path, program)?;
        let message = encode_model(program, metadata).map_err(|fault| fault.of(&path))?;
        let model = message.encode_to_vec();
        write(&path, &model)?;
        write(&self.root.join(MANIFEST_FILE), &Manifest::of_model(&model).to_json())
    }

    fn check_weights(&self, model: &Path, program: &Program) -> Result<(), PackageError> {
        let path = self.weights_path();
        let blobs = if path.exists() { BlobFile::open(path)? } else { BlobFile::empty(path) };
        check_blobs(model, program, &blobs)
    }

    fn item(&self, item: &str) -> PathBuf {
        self.root.join("Data").join(item)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), PackageError> {
    fs::write(path, bytes).map_err(PackageError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlobWriter, DType, Function, FunctionBuilder, TensorType};

    /// `y = silu(x)`, fp16 `(1,4)`.
    fn silu(function: &str, opset: &str) -> Function {
        let mut b = FunctionBuilder::new(function);
        let x = b.input("x", TensorType::f16([1, 4])).unwrap();
        let y = b.silu(x).unwrap();
        let y = b.name(y, "y").unwrap();
        b.output(y).unwrap();
        Function { opset: opset.into(), ..b.finish().unwrap() }
    }

    fn model(functions: &[Function]) -> crate::proto::model::Model {
        let program = Program { functions: functions.to_vec(), default_function: functions[0].name.clone() };
        encode_model(&program, &Metadata::default()).unwrap()
    }

    #[test]
    fn a_package_has_its_three_files_and_is_the_same_every_time() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            format!("Data/{MODEL_ITEM}"),
            format!("Data/{WEIGHTS_ITEM}/{WEIGHTS_FILE}"),
            MANIFEST_FILE.into(),
        ];
        let write = |name: &str| {
            let package = PackageWriter::create(dir.path().join(name)).unwrap();
            let mut blobs = BlobWriter::new(package.create_weights().unwrap(), 1).unwrap();
            blobs.put(DType::F16, 1, &[0, 0x3c]).unwrap();
            blobs.finish().unwrap();
            let program =
                Program { functions: vec![silu("decode", "CoreML8")], default_function: "decode".into() };
            package.finish(&program, &Metadata::default()).unwrap();
            files.clone().map(|file| fs::read(dir.path().join(name).join(file)).unwrap())
        };
        assert_eq!(write("a.mlpackage"), write("b.mlpackage"));
    }

    #[test]
    fn what_is_already_there_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(PackageWriter::create(dir.path()), Err(PackageError::Io { action: "create", .. })));
    }

    #[test]
    fn functions_are_described_one_by_one() {
        let description =
            model(&[silu("decode", "CoreML8"), silu("prefill", "CoreML8")]).description.unwrap();
        assert!(description.input.is_empty() && description.output.is_empty());
        assert_eq!(description.default_function_name, "decode");
        let names: Vec<_> = description.functions.iter().map(|function| &*function.name).collect();
        assert_eq!(names, ["decode", "prefill"]);
    }

    #[test]
    fn the_version_follows_from_opsets_features_and_functions() {
        assert_eq!(model(&[silu("main", "CoreML8")]).specification_version, 9);
        assert_eq!(model(&[silu("main", "CoreML9")]).specification_version, 10);
        assert_eq!(model(&[silu("decode", "CoreML7")]).specification_version, 9);
        let old = model(&[silu("main", "CoreML5")]);
        assert_eq!(old.specification_version, 7, "halves as features came with version 7");
        assert_eq!(old.description.unwrap().input.len(), 1);
    }

    #[test]
    fn a_program_that_cannot_be_expressed_or_does_not_hold_together_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refusal = |name: &str, edit: fn(&mut Function)| {
            let package = PackageWriter::create(dir.path().join(name)).unwrap();
            let mut program = Program { functions: vec![silu("a", "CoreML8")], default_function: "a".into() };
            edit(&mut program.functions[0]);
            package.finish(&program, &Metadata::default()).unwrap_err().to_string()
        };
        let taken = refusal("taken", |function| function.values[1].name = "x".into());
        assert!(
            taken.ends_with("value `x`: expected a name of its own, found another of that name"),
            "{taken}"
        );
        let double = refusal("double", |function| {
            for value in &mut function.values {
                value.ty = TensorType::scalar(DType::F16).into();
            }
        });
        let expected = "function `a`: inputs: `x`: type of a feature: expected fp16, fp32, fp64, int32 or int8 of rank 1 \
                        or more, found fp16()";
        assert!(double.ends_with(expected), "{double}");
        let blob = refusal("blob", |function| {
            let mut b = FunctionBuilder::new("a");
            let blob = crate::BlobLayout::default().place(DType::F16, 10).unwrap();
            let w = b.weight("w", TensorType::f16([10]), blob).unwrap();
            let y = b.silu(w).unwrap();
            b.output(y).unwrap();
            *function = b.finish().unwrap();
        });
        assert!(blob.contains("operation 0, const `w`: "), "{blob}");
        assert!(blob.ends_with("weight.bin: no blob record begins at offset 64"), "{blob}");
    }
}
