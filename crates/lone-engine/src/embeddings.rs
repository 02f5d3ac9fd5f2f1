//! The token embedding table: mapped, and gathered from on the CPU.

use std::path::Path;

use half::f16;
use lone_bundle::Embeddings;
use lone_mil::Mapped;

use crate::LoadError;

/// `(V, D)` fp16, in the file.
#[derive(Debug)]
pub(crate) struct EmbeddingTable {
    file: Mapped,
    columns: usize,
}

impl EmbeddingTable {
    pub(crate) fn open(dir: &Path, description: &Embeddings) -> Result<Self, LoadError> {
        let path = dir.join(&description.file);
        let file = match Mapped::open(&path) {
            Ok(file) => file,
            Err(source) => return Err(LoadError::Io { path, source }),
        };
        let expected = 2 * description.rows as u64 * description.columns as u64;
        let found = file.len() as u64;
        if expected != found {
            return Err(LoadError::Embeddings { path, expected, found });
        }
        Ok(EmbeddingTable { file, columns: description.columns })
    }

    /// Writes the embeddings of `tokens` as columns of `hidden (D, S)`. Columns after the last token repeat it: a
    /// pass must see sane numbers even where nobody reads the result.
    pub(crate) fn gather(&self, tokens: &[u32], hidden: &mut [f16]) {
        let table: &[f16] = bytemuck::cast_slice(&self.file);
        let width = hidden.len() / self.columns;
        for column in 0..width {
            let token = tokens[column.min(tokens.len() - 1)] as usize;
            let embedding = &table[token * self.columns..][..self.columns];
            for (row, &value) in embedding.iter().enumerate() {
                hidden[row * width + column] = value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(rows: usize) -> Embeddings {
        Embeddings { file: "embeddings.bin".into(), rows, columns: 2 }
    }

    #[test]
    fn tokens_become_columns_and_padding_repeats_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let values: Vec<f16> = (0..6u8).map(f16::from).collect();
        std::fs::write(dir.path().join("embeddings.bin"), bytemuck::cast_slice(&values)).unwrap();
        let table = EmbeddingTable::open(dir.path(), &description(3)).unwrap();
        let mut hidden = [f16::ZERO; 6];
        table.gather(&[2, 0], &mut hidden);
        assert_eq!(hidden, [4, 0, 0, 5, 1, 1].map(|value: u8| f16::from(value)));
    }

    #[test]
    fn a_table_of_another_size_is_refused_with_both_sizes() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("embeddings.bin"), [0; 12]).unwrap();
        let error = EmbeddingTable::open(dir.path(), &description(4)).unwrap_err().to_string();
        assert!(error.ends_with("embeddings.bin: expected 16 bytes of embeddings, found 12"), "{error}");
    }
}
