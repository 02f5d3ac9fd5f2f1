//! The tensors of a model: names, shapes, and what their random values are like.

use super::{Family, Model};

/// One tensor of the checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tensor {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) mean: f32,
    pub(super) deviation: f32,
}

impl Tensor {
    pub(super) fn elements(&self) -> usize {
        self.shape.iter().product()
    }
}

/// All tensors, in the order the model uses them.
pub(super) fn tensors(model: &Model) -> Vec<Tensor> {
    let mut list = List(Vec::new());
    list.matrix("model.embed_tokens", model.vocab, model.hidden);
    for i in 0..model.layers {
        let layer = format!("model.layers.{i}");
        list.norm(&format!("{layer}.operator_norm"), model.hidden);
        match model.layer_kind(i) {
            "conv" => list.short_convolution(&format!("{layer}.conv"), model),
            _ => list.attention(&format!("{layer}.self_attn"), model),
        }
        list.norm(&format!("{layer}.ffn_norm"), model.hidden);
        list.matrix(&format!("{layer}.feed_forward.w1"), model.ffn, model.hidden);
        list.matrix(&format!("{layer}.feed_forward.w3"), model.ffn, model.hidden);
        list.matrix(&format!("{layer}.feed_forward.w2"), model.hidden, model.ffn);
        if model.family == Family::Lfm3 {
            list.norm(&format!("{layer}.post_operator_norm"), model.hidden);
            list.norm(&format!("{layer}.post_ffn_norm"), model.hidden);
        }
    }
    list.norm("model.embedding_norm", model.hidden);
    if !model.tied {
        list.matrix("lm_head", model.vocab, model.hidden);
    }
    list.0
}

struct List(Vec<Tensor>);

impl List {
    fn push(&mut self, name: String, shape: &[usize], mean: f32, deviation: f32) {
        self.0.push(Tensor { name, shape: shape.to_vec(), mean, deviation });
    }

    /// Scaled by its width, so that it keeps the size of what it multiplies.
    fn matrix(&mut self, name: &str, out: usize, width: usize) {
        self.push(format!("{name}.weight"), &[out, width], 0.0, (width as f32).sqrt().recip());
    }

    fn norm(&mut self, name: &str, width: usize) {
        self.push(format!("{name}.weight"), &[width], 1.0, 0.1);
    }

    fn bias(&mut self, name: &str, width: usize) {
        self.push(format!("{name}.bias"), &[width], 0.0, 0.1);
    }

    fn short_convolution(&mut self, name: &str, model: &Model) {
        let (hidden, taps) = (model.hidden, model.taps);
        let [in_proj, conv, out_proj] = ["in_proj", "conv", "out_proj"].map(|part| format!("{name}.{part}"));
        self.matrix(&in_proj, 3 * hidden, hidden);
        self.push(format!("{conv}.weight"), &[hidden, 1, taps], 0.0, (taps as f32).sqrt().recip());
        self.matrix(&out_proj, hidden, hidden);
        if model.conv_bias {
            self.bias(&in_proj, 3 * hidden);
            self.bias(&conv, hidden);
            self.bias(&out_proj, hidden);
        }
    }

    fn attention(&mut self, name: &str, model: &Model) {
        let (queries, keys) = (model.heads * model.head_dim, model.kv_heads * model.head_dim);
        let (q_norm, k_norm, out) = match model.family {
            Family::Lfm2 => ("q_layernorm", "k_layernorm", "out_proj"),
            Family::Lfm3 => ("q_norm", "k_norm", "o_proj"),
        };
        self.matrix(&format!("{name}.q_proj"), queries, model.hidden);
        self.matrix(&format!("{name}.k_proj"), keys, model.hidden);
        self.matrix(&format!("{name}.v_proj"), keys, model.hidden);
        self.norm(&format!("{name}.{q_norm}"), model.head_dim);
        self.norm(&format!("{name}.{k_norm}"), model.head_dim);
        if model.family == Family::Lfm3 {
            self.matrix(&format!("{name}.gate_proj"), model.heads, model.hidden);
        }
        self.matrix(&format!("{name}.{out}"), model.hidden, queries);
    }
}
