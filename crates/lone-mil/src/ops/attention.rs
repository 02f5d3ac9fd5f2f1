//! Fused attention.

use super::call::broadcast;
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
