//! Normally distributed weights, at the speed of a disk.
//!
//! Every 12 bits of a random word pick one of 4096 values that were drawn beforehand and encoded in the wanted
//! type, so that a value costs a table look-up.

use clap::ValueEnum;
use half::{bf16, f16};

use crate::split_mix::SplitMix;

/// Element types of checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names are the types")]
pub enum DType {
    Bf16,
    F16,
    F32,
}

impl DType {
    pub(super) fn config_name(self) -> &'static str {
        match self {
            DType::Bf16 => "bfloat16",
            DType::F16 => "float16",
            DType::F32 => "float32",
        }
    }

    pub(super) fn safetensors_name(self) -> &'static str {
        match self {
            DType::Bf16 => "BF16",
            DType::F16 => "F16",
            DType::F32 => "F32",
        }
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            DType::Bf16 | DType::F16 => 2,
            DType::F32 => 4,
        }
    }

    /// Little-endian bytes of `value`, at the front of four.
    fn encode(self, value: f32) -> [u8; 4] {
        let two = |bytes: [u8; 2]| [bytes[0], bytes[1], 0, 0];
        match self {
            DType::Bf16 => two(bf16::from_f32(value).to_le_bytes()),
            DType::F16 => two(f16::from_f32(value).to_le_bytes()),
            DType::F32 => value.to_le_bytes(),
        }
    }
}

const TABLE: usize = 4096;

/// An endless stream of encoded values with one mean and deviation.
pub(super) struct Values {
    words: SplitMix,
    table: Vec<[u8; 4]>,
    dtype: DType,
}

impl Values {
    pub(super) fn new(seed: u64, dtype: DType, mean: f32, deviation: f32) -> Self {
        let mut words = SplitMix(seed);
        let table = (0..TABLE).map(|_| dtype.encode(mean + deviation * words.normal())).collect();
        Values { words, table, dtype }
    }

    /// Fills `out`, a whole number of values.
    pub(super) fn fill(&mut self, out: &mut [u8]) {
        match self.dtype.bytes() {
            2 => self.fill_by::<2>(out),
            _ => self.fill_by::<4>(out),
        }
    }

    fn fill_by<const BYTES: usize>(&mut self, out: &mut [u8]) {
        let (values, rest) = out.as_chunks_mut::<BYTES>();
        assert!(rest.is_empty(), "a whole number of values");
        for values in values.chunks_mut(5) {
            let mut word = self.words.next();
            for value in values {
                value.copy_from_slice(&self.table[word as usize % TABLE][..BYTES]);
                word >>= TABLE.ilog2();
            }
        }
    }
}

/// A seed for the tensor of that name, so that its values do not depend on what was written before it.
pub(super) fn seed_for(seed: u64, name: &str) -> u64 {
    name.bytes().fold(seed, |hash, byte| SplitMix(hash ^ u64::from(byte)).next())
}
