//! `.mlpackage` directories: programs and their weights on disk.
//!
//! ```text
//! NAME.mlpackage/
//!   Manifest.json                              which items there are, and which one is the model
//!   Data/com.apple.CoreML/model.mlmodel        the program and the description of its features, as protobuf
//!   Data/com.apple.CoreML/weights/weight.bin   the blobs, shared by all functions
//! ```
//! Writing puts the manifest last, so a package that was not finished is not one. Equal programs become equal
//! bytes: nothing in a package depends on time or chance.

mod decode;
mod description;
mod encode;
mod error;
mod literal;
mod manifest;
mod metadata;
mod reader;
mod types;
mod writer;

pub use error::PackageError;
pub use metadata::Metadata;
pub use reader::Package;
pub use writer::PackageWriter;

/// The model's place under `Data/`.
const MODEL_ITEM: &str = "com.apple.CoreML/model.mlmodel";
/// The weights' place under `Data/`.
const WEIGHTS_ITEM: &str = "com.apple.CoreML/weights";
/// The name of the one file of weights.
const WEIGHTS_FILE: &str = "weight.bin";
/// What programs call that file.
const WEIGHTS_REFERENCE: &str = "@model_path/weights/weight.bin";

/// The first specification version with several functions, states and sub-byte types.
const FUNCTIONS_SINCE: i32 = 9;

#[cfg(test)]
mod tests;
