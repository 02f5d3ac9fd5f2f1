//! The programs of a bundle: which function computes what, and what each port is bound to.

use serde::{Deserialize, Serialize};

/// One package of the bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Graph {
    /// Directory in the bundle, such as `chunk_00.mlpackage`.
    pub package: String,
    /// What it computes.
    pub kind: GraphKind,
    /// Its functions.
    pub functions: Vec<GraphFunction>,
}

/// What a graph computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphKind {
    /// Contiguous layers; the last chunk ends with the final norm.
    Chunk {
        /// First layer and how many.
        layers: Span,
    },
    /// Logits of contiguous vocabulary entries.
    Head {
        /// First token id and how many.
        vocabulary: Span,
    },
}

/// `count` things from `start` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Span {
    pub start: usize,
    pub count: usize,
}

impl Span {
    /// One past the last; the largest number if that is too large, so that no range reaches it.
    pub fn end(self) -> usize {
        self.start.saturating_add(self.count)
    }
}

/// One shape of a graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphFunction {
    /// Name in the package.
    pub name: String,
    /// When it is used.
    pub role: Role,
    /// S, the tokens of a pass.
    pub tokens: usize,
    /// Rows of a full-attention cache; 0 for heads, which have none.
    pub ctx: usize,
    /// In signature order.
    pub inputs: Vec<Port>,
    /// In signature order.
    pub outputs: Vec<Port>,
    /// The value that holds each layer's output; empty for heads.
    pub layer_outputs: Vec<LayerOutput>,
}

/// When a function is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// One token.
    Decode,
    /// Blocks of a prompt.
    Prefill,
    /// A token and its drafts, logits for each.
    Verify,
}

/// A named fp16 tensor of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Port {
    /// Name in the function.
    pub name: String,
    /// Dimensions.
    pub shape: Vec<usize>,
    /// What it carries.
    pub binding: Binding,
}

/// What a port carries. Indices refer to [`crate::Bundle::ropes`] and [`crate::Bundle::caches`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// Hidden states, in or out: `(1, D, 1, S)`.
    Hidden,
    /// Cosines of a rotary embedding at the pass's positions: `(1, 1, d, S)`.
    Cos {
        /// Which one.
        rope: usize,
    },
    /// Sines, likewise.
    Sin {
        /// Which one.
        rope: usize,
    },
    /// Additive mask over `cache rows ++ the pass's own tokens`, `(1, 1, S, columns.count)`.
    Mask {
        /// The rows of the caches it masks.
        rows: Rows,
        /// Keys a query sees, its own included; absent when it sees all before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        window: Option<usize>,
        /// Which columns; all of them unless they are more than an axis may have.
        columns: Span,
    },
    /// Rows of a cache as they stand before the pass: K/V `(1, G, rows.count, d)`, conv `(1, D, K-1, 1)`.
    Cache {
        /// Which cache.
        cache: usize,
        /// Which rows; all of them unless they are more than an axis may have.
        rows: Span,
    },
    /// The pass's new rows of a K/V cache: `(1, G, S, d)`.
    NewRows {
        /// Which cache.
        cache: usize,
    },
    /// Previous window followed by the pass's inputs: `(1, D, K-1+S, 1)`.
    Window {
        /// Which cache.
        cache: usize,
    },
    /// Logits of this head's vocabulary slice: `(1, V', 1, S)`.
    Logits,
}

/// How many rows a cache has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// One a position of the context.
    Context,
    /// A ring of this many: position p lives in row `p % ring`.
    Ring(usize),
}

impl Rows {
    /// T at context `ctx`.
    pub fn count(self, ctx: usize) -> usize {
        match self {
            Rows::Context => ctx,
            Rows::Ring(window) => window,
        }
    }
}

/// Something a session keeps for a layer between passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// The layer it belongs to.
    pub layer: usize,
    /// What it holds.
    #[serde(flatten)]
    pub kind: CacheKind,
}

/// What a cache holds; all of it fp16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CacheKind {
    /// Rotated keys, `(1, G, T, d)`.
    Key {
        /// T.
        rows: Rows,
        /// G.
        kv_heads: usize,
        /// d.
        head_dim: usize,
    },
    /// Values, `(1, G, T, d)`.
    Value {
        /// T.
        rows: Rows,
        /// G.
        kv_heads: usize,
        /// d.
        head_dim: usize,
    },
    /// The last K-1 inputs of the short convolution, `(1, D, K-1, 1)`.
    Conv {
        /// D.
        channels: usize,
        /// K-1.
        rows: usize,
    },
}

impl Cache {
    /// Elements at context `ctx`.
    pub fn elements(&self, ctx: usize) -> usize {
        match self.kind {
            CacheKind::Key { rows, kv_heads, head_dim, .. }
            | CacheKind::Value { rows, kv_heads, head_dim, .. } => kv_heads * rows.count(ctx) * head_dim,
            CacheKind::Conv { channels, rows } => channels * rows,
        }
    }

    /// Bytes at context `ctx`.
    pub fn bytes(&self, ctx: usize) -> u64 {
        2 * self.elements(ctx) as u64
    }
}

/// The value that holds a layer's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerOutput {
    /// Index of the layer.
    pub layer: usize,
    /// Name of the value in the function.
    pub value: String,
}
