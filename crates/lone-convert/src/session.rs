//! What a session keeps between passes, layer by layer, and which position tables and masks its attention takes.

use lone_bundle::{Binding, Cache, CacheKind, Rope, Rows};
use lone_lfm::{Config, LayerKind};

use crate::ConvertOptions;

/// The caches of all layers, in layer order, and the kinds of attention among them.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) caches: Vec<Cache>,
    pub(crate) kinds: Vec<AttentionKind>,
    /// One for each of `kinds`.
    pub(crate) ropes: Vec<Rope>,
    layers: Vec<LayerCaches>,
}

/// Layers of one kind share tables and mask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttentionKind {
    kind: LayerKind,
    /// What the kind is called in the names of inputs.
    pub(crate) name: &'static str,
    pub(crate) rows: Rows,
    pub(crate) window: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
struct LayerCaches {
    /// The layer's first cache; an attention layer's second one follows it.
    first: usize,
    /// The layer's kind of attention, if it is one.
    kind: Option<usize>,
}

/// Indices of an attention layer's caches and of its kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttentionCaches {
    pub(crate) key: usize,
    pub(crate) value: usize,
    pub(crate) kind: usize,
}

impl Session {
    pub(crate) fn new(config: &Config, options: &ConvertOptions) -> Self {
        let kinds = attention_kinds(config, options);
        let rope = |kind: &AttentionKind| {
            let rope = config.rope(kind.kind).expect("a kind that is used has its rotary embedding");
            Rope { inv_freq: lone_lfm::Rope::new(rope, config.head_dim).inv_freq().to_vec() }
        };
        let ropes = kinds.iter().map(rope).collect();
        let mut session = Session { caches: Vec::new(), kinds, ropes, layers: Vec::new() };
        for (layer, &kind) in config.layers.iter().enumerate() {
            session.add_layer(config, layer, kind);
        }
        session
    }

    fn add_layer(&mut self, config: &Config, layer: usize, kind: LayerKind) {
        let first = self.caches.len();
        let kind = self.kinds.iter().position(|known| known.kind == kind);
        self.layers.push(LayerCaches { first, kind });
        let Some(kind) = kind else {
            let rows = config.conv_taps - 1;
            let kind = CacheKind::Conv { channels: config.hidden_size, rows };
            return self.caches.push(Cache { layer, kind });
        };
        let (rows, kv_heads, head_dim) = (self.kinds[kind].rows, config.kv_heads, config.head_dim);
        self.caches.push(Cache { layer, kind: CacheKind::Key { rows, kv_heads, head_dim } });
        self.caches.push(Cache { layer, kind: CacheKind::Value { rows, kv_heads, head_dim } });
    }

    /// The cache of a convolution layer.
    pub(crate) fn conv(&self, layer: usize) -> usize {
        self.layers[layer].first
    }

    /// The caches of an attention layer.
    pub(crate) fn attention(&self, layer: usize) -> AttentionCaches {
        let LayerCaches { first, kind } = self.layers[layer];
        let kind = kind.expect("only attention layers are asked for it");
        AttentionCaches { key: first, value: first + 1, kind }
    }

    /// The caches of a layer, whatever it is.
    pub(crate) fn caches_of(&self, layer: usize) -> std::ops::Range<usize> {
        let first = self.layers[layer].first;
        first..first + if self.layers[layer].kind.is_some() { 2 } else { 1 }
    }

    /// The kind of attention of a layer, if it is one.
    pub(crate) fn kind_of(&self, layer: usize) -> Option<usize> {
        self.layers[layer].kind
    }

    /// What a cache is called as an input.
    pub(crate) fn input_name(&self, cache: usize) -> String {
        let Cache { layer, kind } = self.caches[cache];
        match kind {
            CacheKind::Key { .. } => format!("k_{layer}"),
            CacheKind::Value { .. } => format!("v_{layer}"),
            CacheKind::Conv { .. } => format!("conv_{layer}"),
        }
    }

    /// What a pass gives back for a cache: its output's name, and what that carries.
    pub(crate) fn output(&self, cache: usize) -> (String, Binding) {
        let name = self.input_name(cache);
        match self.caches[cache].kind {
            CacheKind::Key { .. } | CacheKind::Value { .. } => {
                (format!("{name}_new"), Binding::NewRows { cache })
            }
            CacheKind::Conv { .. } => (format!("{name}_window"), Binding::Window { cache }),
        }
    }
}

/// Those in use, full attention first. A ring that would be longer than the longest context is a plain cache.
fn attention_kinds(config: &Config, options: &ConvertOptions) -> Vec<AttentionKind> {
    let mut kinds = Vec::new();
    if config.layers.contains(&LayerKind::FullAttention) {
        let (kind, name) = (LayerKind::FullAttention, "full");
        kinds.push(AttentionKind { kind, name, rows: Rows::Context, window: None });
    }
    if let Some(window) = config.sliding_window {
        let rows =
            if options.ring && window < options.longest_ctx() { Rows::Ring(window) } else { Rows::Context };
        let (kind, name) = (LayerKind::SlidingAttention, "sliding");
        kinds.push(AttentionKind { kind, name, rows, window: Some(window) });
    }
    kinds
}
