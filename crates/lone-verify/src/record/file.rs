//! Records in files: `tokens`, `logits`, `hidden.i` and perhaps `positions`, as safetensors.
//!
//! ```text
//! tokens    (n)        i32 or i64   what was read
//! positions (rows)     i32 or i64   which of them have rows; absent where all have
//! hidden.0  (rows, D)  f32          the embeddings
//! hidden.i  (rows, D)  f32          the output of layer i-1, for 0 < i < L
//! hidden.L  (rows, D)  f32          the last layer's output after the final norm
//! logits    (rows, V)  f32
//! ```
//! This is what transformers calls `hidden_states`: the last layer's raw output is not among them.

use std::path::Path;

use lone_lfm::Stage;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::{Record, RecordError, State};

impl Record {
    /// Reads a record of a model of `layer_count` layers. Hidden states that are not in it are done without.
    ///
    /// # Errors
    /// [`RecordError`], naming the tensor that is missing or of another kind.
    pub fn open(path: &Path, layer_count: usize) -> Result<Self, RecordError> {
        let bytes = std::fs::read(path).map_err(|source| RecordError::Read { path: path.into(), source })?;
        let tensors = SafeTensors::deserialize(&bytes)
            .map_err(|error| RecordError::Damaged { path: path.into(), reason: error.to_string() })?;
        let file = File { path, tensors };
        let tokens = file.ids("tokens")?;
        let positions: Vec<usize> = match file.find("positions") {
            Some(_) => file.ids("positions")?.into_iter().map(|position| position as usize).collect(),
            None => (0..tokens.len()).collect(),
        };
        file.check_positions(&positions, tokens.len())?;
        let logits = file.table("logits", positions.len())?;
        let states = file.states(layer_count, positions.len())?;
        Ok(Record { tokens, positions, states, logits })
    }
}

struct File<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
}

impl File<'_> {
    fn find(&self, name: &str) -> Option<TensorView<'_>> {
        self.tensors.tensor(name).ok()
    }

    fn refuse<T>(&self, tensor: &str, expected: &str, found: impl ToString) -> Result<T, RecordError> {
        let (path, tensor) = (self.path.into(), tensor.to_owned());
        Err(RecordError::Tensor { path, tensor, expected: expected.to_owned(), found: found.to_string() })
    }

    /// Numbers of a vocabulary, or of positions.
    fn ids(&self, name: &str) -> Result<Vec<u32>, RecordError> {
        const EXPECTED: &str = "a list of i32 or i64, none negative";
        let Some(view) = self.find(name) else { return self.refuse(name, EXPECTED, "no such tensor") };
        let numbers: Vec<i64> = match view.dtype() {
            Dtype::I32 => {
                view.data().as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes).into()).collect()
            }
            Dtype::I64 => view.data().as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect(),
            other => return self.refuse(name, EXPECTED, format_args!("{other:?} {:?}", view.shape())),
        };
        let ids: Result<Vec<u32>, i64> =
            numbers.into_iter().map(|number| u32::try_from(number).map_err(|_| number)).collect();
        match ids {
            Ok(ids) if view.shape().len() == 1 => Ok(ids),
            Ok(_) => self.refuse(name, EXPECTED, format_args!("shape {:?}", view.shape())),
            Err(number) => self.refuse(name, EXPECTED, number),
        }
    }

    fn check_positions(&self, positions: &[usize], token_count: usize) -> Result<(), RecordError> {
        let refuse = |found: String| {
            self.refuse("positions", "positions of tokens, ascending, and at least one", found)
        };
        if positions.is_empty() {
            return refuse("none".to_owned());
        }
        let before = std::iter::once(None).chain(positions.iter().map(Some));
        match before.zip(positions).find(|&(before, at)| before >= Some(at) || *at >= token_count) {
            None => Ok(()),
            Some((Some(before), at)) if before >= at => refuse(format!("{at} after {before}")),
            Some((_, at)) => refuse(format!("{at} of {token_count} tokens")),
        }
    }

    /// The elements of a table of `rows` rows.
    fn table(&self, name: &str, rows: usize) -> Result<Vec<f32>, RecordError> {
        let expected = format!("F32 of shape [{rows}, …]");
        let Some(view) = self.find(name) else { return self.refuse(name, &expected, "no such tensor") };
        match view.shape() {
            &[found, width] if view.dtype() == Dtype::F32 && found == rows && width > 0 => {
                Ok(view.data().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
            }
            shape => self.refuse(name, &expected, format_args!("{:?} {shape:?}", view.dtype())),
        }
    }

    fn states(&self, layer_count: usize, rows: usize) -> Result<Vec<State>, RecordError> {
        let beyond = format!("hidden.{}", layer_count + 1);
        if self.find(&beyond).is_some() {
            let expected = format!("states of {layer_count} layers");
            return self.refuse(&beyond, &expected, "states of more");
        }
        let stages = (0..=layer_count).map(|index| match index {
            0 => Stage::Embeddings,
            index if index == layer_count => Stage::Final,
            index => Stage::Layer(index - 1),
        });
        let named = stages.enumerate().map(|(index, stage)| (format!("hidden.{index}"), stage));
        let stored = named.filter(|(name, _)| self.find(name).is_some());
        stored.map(|(name, stage)| Ok(State { stage, rows: self.table(&name, rows)? })).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of these tensors, read as a record of two layers.
    fn open(tensors: &[(&str, Dtype, &[usize], Vec<u8>)]) -> Result<Record, RecordError> {
        let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
            (*name, TensorView::new(*dtype, shape.to_vec(), bytes).unwrap())
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), safetensors::serialize(views, None).unwrap()).unwrap();
        Record::open(file.path(), 2)
    }

    fn ints(numbers: &[i32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn floats(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    #[test]
    fn hidden_states_stand_for_the_embeddings_the_layers_and_the_final_norm() {
        let row = |number: f32| floats(&[number, 0.0]);
        let record = open(&[
            ("tokens", Dtype::I32, &[3], ints(&[5, 6, 7])),
            ("positions", Dtype::I32, &[1], ints(&[2])),
            ("hidden.0", Dtype::F32, &[1, 2], row(1.0)),
            ("hidden.1", Dtype::F32, &[1, 2], row(2.0)),
            ("hidden.2", Dtype::F32, &[1, 2], row(3.0)),
            ("logits", Dtype::F32, &[1, 4], floats(&[0.0, 1.0, 2.0, 3.0])),
        ])
        .unwrap();
        assert_eq!((record.tokens.as_slice(), record.positions.as_slice()), (&[5, 6, 7][..], &[2][..]));
        assert_eq!((record.vocab_size(), record.logits_of(0)), (4, &[0.0, 1.0, 2.0, 3.0][..]));
        let first = |stage| record.state(stage).map(|rows| rows[0]);
        let stages = [Stage::Embeddings, Stage::Layer(0), Stage::Layer(1), Stage::Final];
        assert_eq!(stages.map(first), [Some(1.0), Some(2.0), None, Some(3.0)]);
    }

    #[test]
    fn every_token_has_a_row_where_no_positions_are_named() {
        let record = open(&[
            ("tokens", Dtype::I64, &[2], [5i64, 6].iter().flat_map(|id| id.to_le_bytes()).collect()),
            ("logits", Dtype::F32, &[2, 1], floats(&[0.0, 1.0])),
        ])
        .unwrap();
        assert_eq!((record.positions, record.states), (vec![0, 1], vec![]));
    }

    #[test]
    fn what_is_missing_or_of_another_kind_is_named() {
        let tokens = |numbers: &[i32]| ("tokens", Dtype::I32, [numbers.len()], ints(numbers));
        let refusal = |tokens: (&str, Dtype, [usize; 1], Vec<u8>),
                       rest: &[(&str, Dtype, &[usize], Vec<u8>)]| {
            let (name, dtype, shape, bytes) = &tokens;
            let tensors = [&[(*name, *dtype, &shape[..], bytes.clone())], rest].concat();
            open(&tensors).unwrap_err().to_string()
        };
        let logits = |dtype, shape: &'static [usize], bytes| [("logits", dtype, shape, bytes)];
        let cases = [
            (refusal(tokens(&[1]), &[]), "`logits`: expected F32 of shape [1, …], found no such tensor"),
            (refusal(tokens(&[-1]), &[]), "`tokens`: expected a list of i32 or i64, none negative, found -1"),
            (
                refusal(tokens(&[]), &[]),
                "`positions`: expected positions of tokens, ascending, and at least one",
            ),
            (
                refusal(tokens(&[1, 2]), &logits(Dtype::F32, &[1, 2], floats(&[0.0; 2]))),
                "`logits`: expected F32 of shape [2, …], found F32 [1, 2]",
            ),
            (
                refusal(tokens(&[1]), &logits(Dtype::F16, &[1, 1], vec![0; 2])),
                "`logits`: expected F32 of shape [1, …], found F16 [1, 1]",
            ),
        ];
        for (message, expected) in cases {
            assert!(message.contains(expected), "{message:?} does not say {expected:?}");
        }
        for (positions, expected) in [([1, 1], "found 1 after 1"), ([0, 2], "found 2 of 2 tokens")] {
            let positions = ("positions", Dtype::I32, &[2][..], ints(&positions));
            let message = refusal(tokens(&[1, 2]), &[positions]);
            assert!(message.ends_with(expected), "{message}");
        }
    }

    #[test]
    fn a_record_of_more_layers_is_refused() {
        let error = open(&[
            ("tokens", Dtype::I32, &[1], ints(&[5])),
            ("logits", Dtype::F32, &[1, 1], floats(&[0.0])),
            ("hidden.3", Dtype::F32, &[1, 1], floats(&[0.0])),
        ]);
        let message = error.unwrap_err().to_string();
        assert!(
            message.ends_with("`hidden.3`: expected states of 2 layers, found states of more"),
            "{message}"
        );
    }

    #[test]
    fn a_file_that_is_no_safetensors_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"no").unwrap();
        let message = Record::open(file.path(), 2).unwrap_err().to_string();
        assert!(message.contains("is not a safetensors file"), "{message}");
    }
}
