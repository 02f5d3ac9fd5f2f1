//! Fused attention.

use super::call::broadcast;
use super::eval::{Eval, Results, spread};
use super::param::{FLOAT, MASK};
use super::{Call, OpError, OpSpec, Param, row};
use crate::{DType, Shape, TensorType};

pub(super) static ROWS: &[OpSpec] = &[OpSpec {
    since: super::Opset::CoreML8,
    ..row(
        "scaled_dot_product_attention",
        &[
            Param::new("query", FLOAT),
            Param::new("key", FLOAT).like("query"),
            Param::new("value", FLOAT).like("query"),
            Param::new("attn_mask", MASK).optional(),
        ],
        infer,
        eval,
        "query (B,…,L,E), key (B,…,S,E), value (B,…,S,V), attn_mask (…,L,S) -> (B,…,L,V): \
         softmax(query * key^T / sqrt(E) + mask) * value; a bool mask is true where a key is seen",
    )
}];

fn infer(call: &Call) -> Result<Vec<TensorType>, OpError> {
    let (query, key, value) = (call.shape("query"), call.shape("key"), call.shape("value"));
    let rank = query.len();
    if rank < 3 {
        return Err(call.wrong_type("query", "rank 3 at least"));
    }
    let lead = &query[..rank - 2];
    let embedding = query[rank - 1];
    if key.len() != rank || key[..rank - 2] != *lead || key[rank - 1] != embedding {
        return Err(
            call.wrong_type("key", format!("(…,S,{embedding}) with the leading axes of query {query}"))
        );
    }
    let keys = key[rank - 2];
    if value.len() != rank || value[..rank - 2] != *lead || value[rank - 2] != keys {
        return Err(call.wrong_type("value", format!("(…,{keys},V) with the leading axes of query {query}")));
    }
    let mut scores = query.to_vec();
    scores[rank - 1] = keys;
    if call.has("attn_mask") {
        let mask = call.ty("attn_mask");
        let dtype_fits = mask.dtype == DType::Bool || mask.dtype == call.dtype("query");
        if !dtype_fits || broadcast(&scores, &mask.shape).as_ref() != Some(&scores) {
            let expected =
                format!("bool or {} that broadcasts to {}", call.dtype("query"), Shape::new(scores));
            return Err(call.wrong_type("attn_mask", expected));
        }
    }
    let mut shape = query.to_vec();
    shape[rank - 1] = value[rank - 1];
    Ok(vec![TensorType::new(call.dtype("query"), shape)])
}

fn eval<'v>(e: &Eval<'_, 'v>) -> Results<'v> {
    let query = e.shape("query");
    let [.., queries, embedding] = **query else { unreachable!("the type rule asks for rank 3") };
    let [.., keys, features] = **e.shape("value") else { unreachable!("the type rule asks for rank 3") };
    let heads = query.elements() / (queries * embedding);
    let mask = additive_mask(e, keys);
    let (query, key, value) = (e.floats("query"), e.floats("key"), e.floats("value"));
    let scale = 1.0 / (embedding as f32).sqrt();
    let mut out = Vec::with_capacity(heads * queries * features);
    let mut scores = vec![0.0; keys];
    for row in 0..heads * queries {
        let head = row / queries;
        let query = &query[row * embedding..][..embedding];
        for (score, key) in scores.iter_mut().zip(key[head * keys * embedding..].chunks_exact(embedding)) {
            *score = e.numerics.dot(query, key, 0.0) * scale;
        }
        if let Some(mask) = &mask {
            scores.iter_mut().zip(&mask[row * keys..]).for_each(|(score, mask)| *score += mask);
        }
        e.numerics.softmax(&mut scores);
        let values = &value[head * keys * features..][..keys * features];
        out.extend((0..features).map(|feature| {
            let column: Vec<f32> = values[feature..].iter().step_by(features).copied().collect();
            e.numerics.dot(&scores, &column, 0.0)
        }));
    }
    e.computed(out)
}

/// The mask as numbers to add, one per score; a false of a bool mask is -inf.
fn additive_mask(e: &Eval<'_, '_>, keys: usize) -> Option<Vec<f32>> {
    let mask = e.tensors("attn_mask").first()?;
    let mut shape = e.shape("query").to_vec();
    *shape.last_mut().expect("the type rule asks for rank 3") = keys;
    let shape = Shape::new(shape);
    Some(match mask.ty.dtype {
        DType::Bool => {
            let seen = mask.as_ints();
            let seen = spread(&seen, &mask.ty.shape, &shape);
            seen.iter().map(|&seen| if seen != 0 { 0.0 } else { f32::NEG_INFINITY }).collect()
        }
        _ => spread(&mask.as_floats(), &mask.ty.shape, &shape).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::{f16, infer};
    use crate::TensorType;

    fn attend(key: &[usize], value: &[usize], mask: Option<TensorType>) -> String {
        let mut tensors = vec![("query", f16(&[1, 4, 3, 8])), ("key", f16(key)), ("value", f16(value))];
        tensors.extend(mask.map(|mask| ("attn_mask", mask)));
        infer("scaled_dot_product_attention", &tensors, &[])
    }

    #[test]
    fn heads_are_not_shared_and_masks_broadcast() {
        let (key, value) = ([1, 4, 16, 8], [1, 4, 16, 5]);
        let cases = [
            (attend(&key, &value, None), "fp16(1,4,3,5)"),
            (attend(&key, &value, Some(f16(&[1, 1, 3, 16]))), "fp16(1,4,3,5)"),
            (attend(&key, &value, Some(f16(&[16]))), "fp16(1,4,3,5)"),
            (
                attend(&key, &value, Some(f16(&[1, 1, 3, 15]))),
                "parameter `attn_mask`: expected bool or fp16 that broadcasts to (1,4,3,16), found fp16(1,1,3,15)",
            ),
            (
                attend(&[1, 2, 16, 8], &value, None),
                "parameter `key`: expected (…,S,8) with the leading axes of query (1,4,3,8), found fp16(1,2,16,8)",
            ),
            (
                attend(&key, &[1, 4, 15, 5], None),
                "parameter `value`: expected (…,16,V) with the leading axes of query (1,4,3,8), found fp16(1,4,15,5)",
            ),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }
}
