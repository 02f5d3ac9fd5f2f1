//! The description of the fake model's bundle; names of ports are arbitrary on purpose.

use std::collections::BTreeMap;

use lone_bundle::{
    Binding, Bundle, Cache, CacheKind, Embeddings, Graph, GraphFunction, GraphKind, LayerKind, LayerOutput,
    ModelFacts, Port, Provenance, Role, Rope, Rows, SCHEMA, SamplingDefaults, Span,
};

use super::{HEAD_DIM, HEADS, HIDDEN, Spec, TAPS, VOCAB};

/// The bundle `spec` describes: two chunks of a convolution and an attention layer, and two heads.
pub(crate) fn bundle(spec: &Spec) -> Bundle {
    let layers = [LayerKind::Conv, LayerKind::FullAttention, LayerKind::Conv, LayerKind::SlidingAttention];
    let ropes = [Rope { inv_freq: vec![0.7] }, Rope { inv_freq: vec![0.3] }];
    let graphs = [0, 1].map(|chunk| Graph {
        package: format!("c{chunk}"),
        kind: GraphKind::Chunk { layers: Span { start: 2 * chunk, count: 2 } },
        functions: spec.chunk_functions(chunk),
    });
    let heads = [(0, 6), (6, 5)].map(|(start, count)| Graph {
        package: format!("h{start}"),
        kind: GraphKind::Head { vocabulary: Span { start, count } },
        functions: spec.heads.iter().map(|&tokens| head_function(tokens, count)).collect(),
    });
    Bundle {
        schema: SCHEMA,
        model: facts(layers.to_vec(), spec.window),
        ropes: ropes.to_vec(),
        embeddings: Embeddings { file: "embeddings.bin".into(), rows: VOCAB, columns: HIDDEN },
        caches: (0..2).flat_map(|chunk| spec.caches(chunk)).collect(),
        graphs: graphs.into_iter().chain(heads).collect(),
        provenance: Provenance {
            lone_version: "0".into(),
            source_hash: String::new(),
            flags: BTreeMap::new(),
        },
        placement: None,
        files: vec![],
    }
}

fn facts(layers: Vec<LayerKind>, window: usize) -> ModelFacts {
    ModelFacts {
        name: "fake".into(),
        model_type: "lfm3".into(),
        hidden_size: HIDDEN,
        ffn_size: 1,
        layers,
        heads: HEADS,
        kv_heads: HEADS,
        head_dim: HEAD_DIM,
        vocab_size: VOCAB,
        conv_taps: TAPS,
        sliding_window: Some(window),
        max_positions: 1000,
        parameters: 1,
        bos_token_id: Some(1),
        eos_token_ids: vec![7],
        sampling: SamplingDefaults::default(),
    }
}

impl Spec {
    fn rows(&self, chunk: usize) -> Rows {
        if chunk == 1 && self.ring { Rows::Ring(self.window) } else { Rows::Context }
    }

    fn caches(&self, chunk: usize) -> [Cache; 3] {
        let (rows, kv_heads, head_dim) = (self.rows(chunk), HEADS, HEAD_DIM);
        [
            Cache { layer: 2 * chunk, kind: CacheKind::Conv { channels: HIDDEN, rows: TAPS - 1 } },
            Cache { layer: 2 * chunk + 1, kind: CacheKind::Key { rows, kv_heads, head_dim } },
            Cache { layer: 2 * chunk + 1, kind: CacheKind::Value { rows, kv_heads, head_dim } },
        ]
    }

    fn chunk_functions(&self, chunk: usize) -> Vec<GraphFunction> {
        let shapes = self.contexts.iter().flat_map(|&ctx| self.shapes.iter().map(move |shape| (ctx, shape)));
        shapes
            .map(|(ctx, &(role, tokens))| GraphFunction {
                name: format!("f{ctx}_{tokens}"),
                role,
                tokens,
                ctx,
                inputs: self.inputs(chunk, ctx, tokens),
                outputs: outputs(chunk, tokens),
                layer_outputs: vec![
                    LayerOutput { layer: 2 * chunk, value: "between".into() },
                    LayerOutput { layer: 2 * chunk + 1, value: if chunk == 0 { "o0" } else { "raw" }.into() },
                ],
            })
            .collect()
    }

    fn inputs(&self, chunk: usize, ctx: usize, tokens: usize) -> Vec<Port> {
        let rows = self.rows(chunk);
        let row_count = rows.count(ctx);
        let mut ports = vec![
            (vec![1, HIDDEN, 1, tokens], Binding::Hidden),
            (vec![1, 1, HEAD_DIM, tokens], Binding::Sin { rope: chunk }),
            (vec![1, 1, HEAD_DIM, tokens], Binding::Cos { rope: chunk }),
        ];
        let window = (chunk == 1).then_some(self.window);
        for columns in self.split(row_count + tokens) {
            ports.push((vec![1, 1, tokens, columns.count], Binding::Mask { rows, window, columns }));
        }
        for cache in [3 * chunk + 1, 3 * chunk + 2] {
            for rows in self.split(row_count) {
                let shape = vec![1, HEADS, rows.count, HEAD_DIM];
                ports.push((shape, Binding::Cache { cache, rows }));
            }
        }
        let rows = Span { start: 0, count: TAPS - 1 };
        ports.push((vec![1, HIDDEN, TAPS - 1, 1], Binding::Cache { cache: 3 * chunk, rows }));
        named("i", ports)
    }

    fn split(&self, total: usize) -> impl Iterator<Item = Span> {
        let starts = (0..total).step_by(self.segment_rows);
        starts.map(move |start| Span { start, count: self.segment_rows.min(total - start) })
    }
}

fn outputs(chunk: usize, tokens: usize) -> Vec<Port> {
    let window = (vec![1, HIDDEN, TAPS - 1 + tokens, 1], Binding::Window { cache: 3 * chunk });
    let rows = |cache| (vec![1, HEADS, tokens, HEAD_DIM], Binding::NewRows { cache });
    let hidden = (vec![1, HIDDEN, 1, tokens], Binding::Hidden);
    named("o", vec![hidden, rows(3 * chunk + 2), window, rows(3 * chunk + 1)])
}

fn head_function(tokens: usize, count: usize) -> GraphFunction {
    GraphFunction {
        name: format!("f{tokens}"),
        role: if tokens == 1 { Role::Decode } else { Role::Verify },
        tokens,
        ctx: 0,
        inputs: named("i", vec![(vec![1, HIDDEN, 1, tokens], Binding::Hidden)]),
        outputs: named("o", vec![(vec![1, count, 1, tokens], Binding::Logits)]),
        layer_outputs: vec![],
    }
}

fn named(prefix: &str, ports: Vec<(Vec<usize>, Binding)>) -> Vec<Port> {
    let ports = ports.into_iter().enumerate();
    ports.map(|(i, (shape, binding))| Port { name: format!("{prefix}{i}"), shape, binding }).collect()
}
