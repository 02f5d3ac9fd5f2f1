//! Bytes from anywhere: whatever they are, reading them ends with a program or an error.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::package::Package;

use super::sample_files;

static SAMPLE: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(sample_files);

/// A few bytes overwritten, then a cut or an insertion.
fn mutate(bytes: &[u8], patches: &[(usize, u8)], cut: Option<usize>, extra: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for &(at, byte) in patches {
        let length = bytes.len();
        bytes[at % length] = byte;
    }
    let at = cut.unwrap_or(bytes.len()) % (bytes.len() + 1);
    match extra {
        [] => bytes.truncate(at),
        _ => drop(bytes.splice(at..at, extra.iter().copied())),
    }
    bytes
}

proptest! {
    #[test]
    fn a_mutated_model_never_panics(
        patches in vec((any::<usize>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<usize>()),
        extra in vec(any::<u8>(), 0..3),
    ) {
        let (model, weights) = &*SAMPLE;
        let _ = Package::from_bytes("model", &mutate(model, &patches, cut, &extra), weights);
    }

    #[test]
    fn mutated_weights_never_panic_and_cannot_grow(
        patches in vec((any::<usize>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<usize>()),
        extra in vec(any::<u8>(), 0..3),
    ) {
        let (model, weights) = &*SAMPLE;
        let weights = mutate(weights, &patches, cut, &extra);
        if let Ok(package) = Package::from_bytes("weights", model, &weights) {
            let bytes: u64 = package.blobs.blobs().iter().map(|blob| blob.data_bytes()).sum();
            prop_assert!(bytes < weights.len() as u64);
        }
    }

    #[test]
    fn bytes_that_are_no_model_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(Package::from_bytes("model", &bytes, &bytes).is_err());
    }
}
