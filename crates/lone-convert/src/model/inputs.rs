//! What a chunk's function is given, declared in signature order, and what its layers want remembered.

use std::collections::BTreeMap;

use lone_bundle::{Binding, CacheKind, Span};
use lone_mil::{BuildError, ValueId};

use crate::extents::KeySegments;
use crate::function::FunctionGraph;
use crate::session::Session;

/// The inputs of a chunk, as values.
pub(crate) struct ChunkInputs {
    /// (1,D,1,S).
    pub(crate) hidden: ValueId,
    attention: BTreeMap<usize, AttentionInputs>,
    caches: BTreeMap<usize, Vec<ValueId>>,
}

/// What all attention layers of one kind share.
pub(crate) struct AttentionInputs {
    /// (1,1,d,S).
    pub(crate) cos: ValueId,
    /// (1,1,d,S).
    pub(crate) sin: ValueId,
    /// (1,1,S,T+S), or one for each segment of the keys.
    pub(crate) masks: Vec<ValueId>,
}

/// A value that a layer wants remembered, and the cache it is for.
pub(crate) struct NewState {
    pub(crate) cache: usize,
    pub(crate) value: ValueId,
}

/// D and d.
pub(crate) struct Widths {
    pub(crate) hidden: usize,
    pub(crate) head: usize,
}

impl ChunkInputs {
    /// Declares what the layers of a chunk use, and nothing else.
    pub(crate) fn declare(
        graph: &mut FunctionGraph,
        session: &Session,
        layers: Span,
        widths: &Widths,
    ) -> Result<Self, BuildError> {
        let layers = layers.start..layers.end();
        let mut kinds: Vec<usize> = layers.clone().filter_map(|layer| session.kind_of(layer)).collect();
        kinds.sort_unstable();
        kinds.dedup();

        let hidden = graph.input("hidden", [1, widths.hidden, 1, graph.tokens()], Binding::Hidden)?;
        let mut tables = Vec::new();
        for &kind in &kinds {
            tables.push(declare_tables(graph, session, kind, widths.head)?);
        }
        let mut attention = BTreeMap::new();
        for (kind, (cos, sin)) in kinds.into_iter().zip(tables) {
            let masks = declare_masks(graph, session, kind)?;
            attention.insert(kind, AttentionInputs { cos, sin, masks });
        }
        let mut caches = BTreeMap::new();
        for cache in layers.flat_map(|layer| session.caches_of(layer)) {
            caches.insert(cache, declare_cache(graph, session, cache)?);
        }
        Ok(ChunkInputs { hidden, attention, caches })
    }

    /// What attention of `kind` is given.
    pub(crate) fn attention(&self, kind: usize) -> &AttentionInputs {
        &self.attention[&kind]
    }

    /// A cache, in as many segments as there are.
    pub(crate) fn cache(&self, cache: usize) -> &[ValueId] {
        &self.caches[&cache]
    }
}

fn declare_tables(
    graph: &mut FunctionGraph,
    session: &Session,
    kind: usize,
    head_dim: usize,
) -> Result<(ValueId, ValueId), BuildError> {
    let name = session.kinds[kind].name;
    let shape = [1, 1, head_dim, graph.tokens()];
    let cos = graph.input(&format!("cos_{name}"), shape, Binding::Cos { rope: kind })?;
    let sin = graph.input(&format!("sin_{name}"), shape, Binding::Sin { rope: kind })?;
    Ok((cos, sin))
}

fn declare_masks(
    graph: &mut FunctionGraph,
    session: &Session,
    kind: usize,
) -> Result<Vec<ValueId>, BuildError> {
    let kind = session.kinds[kind];
    let tokens = graph.tokens();
    let segments = KeySegments::new(kind.rows.count(graph.ctx()), tokens);
    let name = format!("mask_{}", kind.name);
    let named = segment_names(&name, &segments.mask, segments.is_cut());
    let mut masks = Vec::new();
    for (name, &columns) in named.iter().zip(&segments.mask) {
        let binding = Binding::Mask { rows: kind.rows, window: kind.window, columns };
        masks.push(graph.input(name, [1, 1, tokens, columns.count], binding)?);
    }
    Ok(masks)
}

fn declare_cache(
    graph: &mut FunctionGraph,
    session: &Session,
    cache: usize,
) -> Result<Vec<ValueId>, BuildError> {
    let name = session.input_name(cache);
    let (rows, kv_heads, head_dim) = match session.caches[cache].kind {
        CacheKind::Key { rows, kv_heads, head_dim } | CacheKind::Value { rows, kv_heads, head_dim } => {
            (rows, kv_heads, head_dim)
        }
        CacheKind::Conv { channels, rows } => {
            let binding = Binding::Cache { cache, rows: Span { start: 0, count: rows } };
            return Ok(vec![graph.input(&name, [1, channels, rows, 1], binding)?]);
        }
    };
    let segments = KeySegments::new(rows.count(graph.ctx()), graph.tokens());
    let named = segment_names(&name, &segments.past, segments.is_cut());
    let mut parts = Vec::new();
    for (name, &rows) in named.iter().zip(&segments.past) {
        let binding = Binding::Cache { cache, rows };
        parts.push(graph.input(name, [1, kv_heads, rows.count, head_dim], binding)?);
    }
    Ok(parts)
}

fn segment_names(name: &str, segments: &[Span], is_cut: bool) -> Vec<String> {
    let named = |i| if is_cut { format!("{name}_s{i}") } else { name.to_owned() };
    (0..segments.len()).map(named).collect()
}
