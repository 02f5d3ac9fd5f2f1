//! Which tensors a model consists of: role, name in the file, shape.
//!
//! The structs are generic over what stands for a tensor, so that one definition serves for looking names up and for
//! handing views out.

use std::convert::Infallible;

use super::Shape;
use crate::{Arch, Config, LayerKind};

/// The tensors of one layer, in the order they are used.
#[derive(Debug, Clone)]
pub struct LayerTensors<T> {
    /// Norm in front of the operator, `(D)`.
    pub operator_norm: T,
    /// Convolution or attention.
    pub operator: Operator<T>,
    /// Norm behind the operator, `(D)`; with sandwich norms only.
    pub post_operator_norm: Option<T>,
    /// Norm in front of the feed-forward, `(D)`.
    pub ffn_norm: T,
    /// Gate projection of the feed-forward, `(F, D)`.
    pub w1: T,
    /// Up projection of the feed-forward, `(F, D)`.
    pub w3: T,
    /// Down projection of the feed-forward, `(D, F)`.
    pub w2: T,
    /// Norm behind the feed-forward, `(D)`; with sandwich norms only.
    pub post_ffn_norm: Option<T>,
}

/// The operator of a layer.
#[derive(Debug, Clone)]
pub enum Operator<T> {
    /// Gated short convolution.
    Conv(ConvTensors<T>),
    /// Full or sliding attention.
    Attention(AttentionTensors<T>),
}

/// The gated short convolution; biases with `conv_bias` only.
#[derive(Debug, Clone)]
pub struct ConvTensors<T> {
    /// Projection to B, C and u, `(3D, D)`.
    pub in_proj: T,
    /// `(3D)`.
    pub in_proj_bias: Option<T>,
    /// Depthwise taps, oldest first, `(D, 1, K)`.
    pub conv: T,
    /// `(D)`.
    pub conv_bias: Option<T>,
    /// `(D, D)`.
    pub out_proj: T,
    /// `(D)`.
    pub out_proj_bias: Option<T>,
}

/// Grouped-query attention.
#[derive(Debug, Clone)]
pub struct AttentionTensors<T> {
    /// `(H*d, D)`.
    pub q_proj: T,
    /// `(G*d, D)`.
    pub k_proj: T,
    /// `(G*d, D)`.
    pub v_proj: T,
    /// Norm of every query head, `(d)`.
    pub q_norm: T,
    /// Norm of every key head, `(d)`.
    pub k_norm: T,
    /// One gate for each head, `(H, D)`; with `use_attention_gate` only.
    pub gate: Option<T>,
    /// `(D, H*d)`.
    pub o_proj: T,
}

/// A whole model.
#[derive(Debug, Clone)]
pub(super) struct ModelTensors<T> {
    pub(super) embed: T,
    pub(super) layers: Vec<LayerTensors<T>>,
    pub(super) final_norm: T,
    /// `None` where the head is the embedding table.
    pub(super) head: Option<T>,
}

/// A tensor to look for: every name it may have, and its shape.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) names: Vec<String>,
    pub(super) shape: Shape,
}

/// Everything a model of this configuration consists of.
pub(super) fn wanted(config: &Config) -> ModelTensors<Wanted> {
    let top = |name: &str, letters: &[&'static str]| Wanted {
        names: vec![name.to_owned()],
        shape: Shape::of(config, letters),
    };
    ModelTensors {
        embed: top("model.embed_tokens.weight", &["V", "D"]),
        layers: config
            .layers
            .iter()
            .enumerate()
            .map(|(layer, &kind)| wanted_layer(config, layer, kind))
            .collect(),
        final_norm: top("model.embedding_norm.weight", &["D"]),
        head: (!config.tied).then(|| top("lm_head.weight", &["V", "D"])),
    }
}

fn wanted_layer(config: &Config, layer: usize, kind: LayerKind) -> LayerTensors<Wanted> {
    let one = |name: &str, letters: &[&'static str]| Wanted {
        names: vec![format!("model.layers.{layer}.{name}")],
        shape: Shape::of(config, letters),
    };
    let sandwich = |name| config.sandwich_norm.then(|| one(name, &["D"]));
    LayerTensors {
        operator_norm: one("operator_norm.weight", &["D"]),
        operator: match kind {
            LayerKind::Conv => Operator::Conv(wanted_conv(config, one)),
            LayerKind::FullAttention | LayerKind::SlidingAttention => {
                Operator::Attention(wanted_attention(config, layer, one))
            }
        },
        post_operator_norm: sandwich("post_operator_norm.weight"),
        ffn_norm: one("ffn_norm.weight", &["D"]),
        w1: one("feed_forward.w1.weight", &["F", "D"]),
        w3: one("feed_forward.w3.weight", &["F", "D"]),
        w2: one("feed_forward.w2.weight", &["D", "F"]),
        post_ffn_norm: sandwich("post_ffn_norm.weight"),
    }
}

fn wanted_conv(config: &Config, one: impl Fn(&str, &[&'static str]) -> Wanted) -> ConvTensors<Wanted> {
    let bias = |name, letters: &[&'static str]| config.conv_bias.then(|| one(name, letters));
    ConvTensors {
        in_proj: one("conv.in_proj.weight", &["3D", "D"]),
        in_proj_bias: bias("conv.in_proj.bias", &["3D"]),
        conv: one("conv.conv.weight", &["D", "1", "K"]),
        conv_bias: bias("conv.conv.bias", &["D"]),
        out_proj: one("conv.out_proj.weight", &["D", "D"]),
        out_proj_bias: bias("conv.out_proj.bias", &["D"]),
    }
}

fn wanted_attention(
    config: &Config,
    layer: usize,
    one: impl Fn(&str, &[&'static str]) -> Wanted,
) -> AttentionTensors<Wanted> {
    let (q_norm, k_norm, o_proj) = match config.arch {
        Arch::Lfm2 => ("q_layernorm", "k_layernorm", "out_proj"),
        Arch::Lfm3 => ("q_norm", "k_norm", "o_proj"),
    };
    let part = |name: &str, letters: &[&'static str]| one(&format!("self_attn.{name}.weight"), letters);
    let gate = || {
        let mut gate = part("gate_proj", &["H", "D"]);
        gate.names.push(format!("model.layers.{layer}.self_attn.g_proj.weight"));
        gate
    };
    AttentionTensors {
        q_proj: part("q_proj", &["H*d", "D"]),
        k_proj: part("k_proj", &["G*d", "D"]),
        v_proj: part("v_proj", &["G*d", "D"]),
        q_norm: part(q_norm, &["d"]),
        k_norm: part(k_norm, &["d"]),
        gate: config.attention_gate.then(gate),
        o_proj: part(o_proj, &["D", "H*d"]),
    }
}

impl<T> ModelTensors<T> {
    /// The same model with something else standing for every tensor; the first error ends it.
    pub(super) fn try_map<'a, U, E>(
        &'a self,
        f: &mut impl FnMut(&'a T) -> Result<U, E>,
    ) -> Result<ModelTensors<U>, E> {
        Ok(ModelTensors {
            embed: f(&self.embed)?,
            layers: self.layers.iter().map(|layer| layer.try_map(f)).collect::<Result<_, E>>()?,
            final_norm: f(&self.final_norm)?,
            head: self.head.as_ref().map(f).transpose()?,
        })
    }
}

impl<T> LayerTensors<T> {
    /// The same layer with something else standing for every tensor; the first error ends it.
    pub fn try_map<'a, U, E>(
        &'a self,
        f: &mut impl FnMut(&'a T) -> Result<U, E>,
    ) -> Result<LayerTensors<U>, E> {
        Ok(LayerTensors {
            operator_norm: f(&self.operator_norm)?,
            operator: match &self.operator {
                Operator::Conv(conv) => Operator::Conv(conv.try_map(f)?),
                Operator::Attention(attention) => Operator::Attention(attention.try_map(f)?),
            },
            post_operator_norm: self.post_operator_norm.as_ref().map(&mut *f).transpose()?,
            ffn_norm: f(&self.ffn_norm)?,
            w1: f(&self.w1)?,
            w3: f(&self.w3)?,
            w2: f(&self.w2)?,
            post_ffn_norm: self.post_ffn_norm.as_ref().map(f).transpose()?,
        })
    }

    /// The same layer with something else standing for every tensor.
    pub fn map<'a, U>(&'a self, mut f: impl FnMut(&'a T) -> U) -> LayerTensors<U> {
        let Ok(mapped) = self.try_map(&mut |tensor| Ok::<_, Infallible>(f(tensor)));
        mapped
    }
}

impl<T> ConvTensors<T> {
    fn try_map<'a, U, E>(&'a self, f: &mut impl FnMut(&'a T) -> Result<U, E>) -> Result<ConvTensors<U>, E> {
        Ok(ConvTensors {
            in_proj: f(&self.in_proj)?,
            in_proj_bias: self.in_proj_bias.as_ref().map(&mut *f).transpose()?,
            conv: f(&self.conv)?,
            conv_bias: self.conv_bias.as_ref().map(&mut *f).transpose()?,
            out_proj: f(&self.out_proj)?,
            out_proj_bias: self.out_proj_bias.as_ref().map(f).transpose()?,
        })
    }
}

impl<T> AttentionTensors<T> {
    fn try_map<'a, U, E>(
        &'a self,
        f: &mut impl FnMut(&'a T) -> Result<U, E>,
    ) -> Result<AttentionTensors<U>, E> {
        Ok(AttentionTensors {
            q_proj: f(&self.q_proj)?,
            k_proj: f(&self.k_proj)?,
            v_proj: f(&self.v_proj)?,
            q_norm: f(&self.q_norm)?,
            k_norm: f(&self.k_norm)?,
            gate: self.gate.as_ref().map(&mut *f).transpose()?,
            o_proj: f(&self.o_proj)?,
        })
    }
}
