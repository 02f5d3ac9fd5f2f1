//! From a bundle's directory to a [`Runtime`]: choose functions, load them, check them, lay out the buffers.

use std::path::Path;
use std::sync::Arc;

use lone_bundle::{Bundle, Graph, GraphFunction, GraphKind, Role};
use lone_mil::{Backend, Keep, Model};

use crate::cache::{CacheLayout, CacheShape};
use crate::contract::{Contract, cache_segments};
use crate::embeddings::EmbeddingTable;
use crate::head::{HeadSlice, HeadWidth, Heads};
use crate::pipeline::{LoadedFunction, Pipeline};
use crate::{LoadError, Runtime, buffer::Buffer};

/// What to load of a bundle.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// The roles that will be needed; empty means all the bundle has. A role the bundle lacks is done without.
    pub roles: Vec<Role>,
    /// The context lengths that will be needed; empty means all.
    pub contexts: Vec<usize>,
    /// As in [`crate::SessionOptions::kv_budget_bytes`]: contexts whose caches take more are not loaded, unless there is
    /// no other: then the shortest is.
    pub kv_budget_bytes: Option<u64>,
    /// Keep every layer's output visible, at some cost in speed and memory; see [`crate::Session::observe`].
    pub keep_layer_outputs: bool,
}

impl LoadOptions {
    fn wants(&self, graph: &Graph, function: &GraphFunction) -> bool {
        let role = self.roles.is_empty() || self.roles.contains(&function.role);
        match graph.kind {
            GraphKind::Chunk { .. } => role && self.wants_context(function.ctx),
            // Whatever runs needs the logits of one token.
            GraphKind::Head { .. } => role || function.tokens == 1,
        }
    }

    fn wants_context(&self, ctx: usize) -> bool {
        self.contexts.is_empty() || self.contexts.contains(&ctx)
    }
}

impl Runtime {
    /// Opens the bundle in `dir` and loads its packages on `backend`.
    ///
    /// # Errors
    /// [`LoadError`], naming the file, or the graph, function and port.
    pub fn load(dir: &Path, backend: &dyn Backend, options: &LoadOptions) -> Result<Self, LoadError> {
        let bundle = Bundle::open(dir)?;
        let embeddings = EmbeddingTable::open(dir, &bundle.embeddings)?;
        let loading = Loading::new(&bundle, options);
        let models = loading.models(dir, backend)?;
        let layouts = loading.layouts()?;
        let pipelines = loading.pipelines(&models, &layouts)?;
        let heads = loading.heads()?;
        Ok(Runtime { bundle, models, embeddings, layouts, pipelines, heads })
    }
}

struct Loading<'a> {
    bundle: &'a Bundle,
    options: &'a LoadOptions,
    /// The longest context within the budget, or else the shortest.
    longest: usize,
}

impl<'a> Loading<'a> {
    fn new(bundle: &'a Bundle, options: &'a LoadOptions) -> Self {
        let wanted: Vec<usize> =
            bundle.contexts().into_iter().filter(|ctx| options.wants_context(*ctx)).collect();
        let budget_bytes = options.kv_budget_bytes.unwrap_or(u64::MAX);
        let affordable = wanted.iter().rfind(|ctx| bundle.cache_bytes(**ctx) <= budget_bytes);
        let longest = affordable.or(wanted.first()).copied().unwrap_or_default();
        Loading { bundle, options, longest }
    }

    fn functions(&self, graph: &'a Graph) -> impl Iterator<Item = &'a GraphFunction> {
        let affordable = |function: &&GraphFunction| match graph.kind {
            GraphKind::Chunk { .. } => function.ctx <= self.longest,
            GraphKind::Head { .. } => true,
        };
        let wanted = graph.functions.iter().filter(|function| self.options.wants(graph, function));
        wanted.filter(affordable)
    }

    /// The outputs of layers that `function` does not return anyway.
    fn kept(&self, function: &GraphFunction) -> Vec<String> {
        let values = function.layer_outputs.iter().map(|layer| &layer.value);
        let declared = |value: &&String| function.outputs.iter().any(|port| port.name == **value);
        let hidden = values.filter(|value| !declared(value)).cloned();
        if self.options.keep_layer_outputs { hidden.collect() } else { Vec::new() }
    }

    /// One model a graph, every port of every function checked.
    fn models(&self, dir: &Path, backend: &dyn Backend) -> Result<Vec<Box<dyn Model>>, LoadError> {
        let mut models = Vec::new();
        for graph in &self.bundle.graphs {
            let failed = |source| LoadError::Backend { package: graph.package.clone(), source };
            let functions: Vec<_> = self.functions(graph).collect();
            if functions.is_empty() {
                return Err(self.nothing_to_run(graph));
            }
            let keep = functions.iter().flat_map(|function| {
                let keep = |value| Keep { function: function.name.clone(), value };
                self.kept(function).into_iter().map(keep)
            });
            // Every answer decodes, and none but the first of a session has to wait for the other shapes.
            let lazy = functions.iter().filter(|function| function.role != Role::Decode);
            let options = lone_mil::LoadOptions {
                functions: functions.iter().map(|function| function.name.clone()).collect(),
                lazy: lazy.map(|function| function.name.clone()).collect(),
                keep: keep.collect(),
            };
            let model = backend.load(&dir.join(&graph.package), &options).map_err(failed)?;
            for function in functions {
                let signature = model.signature(&function.name).map_err(failed)?;
                self.contract(graph, function).check(signature, &self.kept(function))?;
            }
            models.push(model);
        }
        Ok(models)
    }

    fn contract(&self, graph: &'a Graph, function: &'a GraphFunction) -> Contract<'a> {
        Contract { bundle: self.bundle, graph, function }
    }

    fn nothing_to_run(&self, graph: &Graph) -> LoadError {
        let LoadOptions { roles, contexts, .. } = self.options;
        let has = graph.functions.iter().map(|function| format!("{:?} at {}", function.role, function.ctx));
        LoadError::NothingToRun {
            graph: graph.package.clone(),
            asked: format!("roles {roles:?}, contexts {contexts:?}"),
            available: has.collect::<Vec<_>>().join(", "),
        }
    }

    /// One layout a context length, ascending; every function of that length must agree with it.
    fn layouts(&self) -> Result<Vec<Arc<CacheLayout>>, LoadError> {
        let mut layouts: Vec<CacheLayout> = Vec::new();
        for graph in self.bundle.chunks() {
            for function in self.functions(graph) {
                let known = layouts.iter().position(|layout| layout.ctx == function.ctx);
                let index = known.unwrap_or_else(|| {
                    let caches = self.bundle.caches.iter();
                    let caches = caches.map(|&cache| CacheShape { cache, segments: Vec::new() }).collect();
                    layouts.push(CacheLayout { ctx: function.ctx, caches });
                    layouts.len() - 1
                });
                for (cache, shape) in layouts[index].caches.iter_mut().enumerate() {
                    let segments: Vec<_> = cache_segments(function, cache).collect();
                    if shape.segments.is_empty() {
                        shape.segments = segments;
                    } else if !segments.is_empty() && shape.segments != segments {
                        let (expected, found) = (format!("{:?}", shape.segments), format!("{segments:?}"));
                        let port = format!("segments of cache {cache}");
                        return Err(self.contract(graph, function).refuse(port, expected, found));
                    }
                }
            }
        }
        layouts.sort_by_key(|layout| layout.ctx);
        Ok(layouts.into_iter().map(Arc::new).collect())
    }

    /// One pipeline for each function the first chunk has, which the others must have too.
    fn pipelines(
        &self,
        models: &[Box<dyn Model>],
        layouts: &[Arc<CacheLayout>],
    ) -> Result<Vec<Pipeline>, LoadError> {
        let chunks = || self.graphs(|kind| matches!(kind, GraphKind::Chunk { .. }));
        let Some((_, first)) = chunks().next() else {
            return Ok(Vec::new());
        };
        let mut pipelines = Vec::new();
        for shape in self.functions(first) {
            let functions = chunks().map(|(index, graph)| {
                let same = |function: &&GraphFunction| {
                    (function.role, function.tokens, function.ctx) == (shape.role, shape.tokens, shape.ctx)
                };
                let function = self.functions(graph).find(same).ok_or_else(|| missing(graph, shape))?;
                self.loaded(models, index, graph, function)
            });
            let functions = functions.collect::<Result<Vec<_>, LoadError>>()?;
            let layout = layouts.iter().find(|layout| layout.ctx == shape.ctx);
            pipelines.push(Pipeline::new(&functions, layout.expect("every function has its layout"))?);
        }
        pipelines.sort_by_key(|pipeline| (pipeline.ctx, pipeline.tokens));
        Ok(pipelines)
    }

    fn loaded<'m>(
        &self,
        models: &'m [Box<dyn Model>],
        index: usize,
        graph: &'a Graph,
        function: &'a GraphFunction,
    ) -> Result<LoadedFunction<'m>, LoadError>
    where
        'a: 'm,
    {
        let signature = models[index].signature(&function.name);
        let signature =
            signature.map_err(|source| LoadError::Backend { package: graph.package.clone(), source })?;
        Ok(LoadedFunction { contract: self.contract(graph, function), signature, graph: index })
    }

    fn heads(&self) -> Result<Heads, LoadError> {
        let heads = || self.graphs(|kind| matches!(kind, GraphKind::Head { .. }));
        let mut widths: Vec<HeadWidth> = Vec::new();
        let Some((_, first)) = heads().next() else {
            return Ok(Heads::new(widths));
        };
        for shape in self.functions(first) {
            if widths.iter().any(|width| width.tokens == shape.tokens) {
                continue;
            }
            let slices = heads().map(|(index, graph)| {
                let same = |function: &&GraphFunction| function.tokens == shape.tokens;
                let function = self.functions(graph).find(same).ok_or_else(|| missing(graph, shape))?;
                let GraphKind::Head { vocabulary } = graph.kind else {
                    unreachable!("these are the heads");
                };
                let logits = Buffer::zeroed(vocabulary.count * shape.tokens)?;
                Ok(HeadSlice {
                    graph: index,
                    function: function.name.clone(),
                    start: vocabulary.start,
                    logits,
                })
            });
            let slices = slices.collect::<Result<_, LoadError>>()?;
            let hidden = Buffer::zeroed(self.bundle.model.hidden_size * shape.tokens)?;
            widths.push(HeadWidth { tokens: shape.tokens, hidden, slices });
        }
        Ok(Heads::new(widths))
    }

    fn graphs(&self, is: fn(&GraphKind) -> bool) -> impl Iterator<Item = (usize, &'a Graph)> {
        self.bundle.graphs.iter().enumerate().filter(move |(_, graph)| is(&graph.kind))
    }
}

fn missing(graph: &Graph, shape: &GraphFunction) -> LoadError {
    LoadError::MissingFunction {
        graph: graph.package.clone(),
        role: shape.role,
        tokens: shape.tokens,
        ctx: shape.ctx,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionOptions;
    use crate::fake::{FakeBackend, Spec, bundle};
    use lone_bundle::{Binding, Rows, Span};

    /// Loads a bundle whose description was damaged, on a backend that knows how it was.
    fn refusal(damage: impl Fn(&mut Bundle), options: &LoadOptions) -> String {
        let spec = Spec::default();
        let dir = spec.write();
        let mut damaged = bundle(&spec);
        damage(&mut damaged);
        damaged.save(dir.path()).unwrap();
        match Runtime::load(dir.path(), &FakeBackend::new(bundle(&spec)), options) {
            Ok(_) => panic!("a damaged bundle was loaded"),
            Err(error) => error.to_string(),
        }
    }

    fn first_chunk(bundle: &mut Bundle) -> &mut GraphFunction {
        &mut bundle.graphs[0].functions[0]
    }

    #[test]
    fn a_description_that_differs_from_the_package_is_refused_by_graph_function_and_port() {
        type Damage = (&'static str, fn(&mut Bundle));
        let damages: [Damage; 5] = [
            ("i3: expected fp16(1,1,1,42), found fp16(1,1,1,41)", |b| first_chunk(b).inputs[3].shape[3] = 42),
            ("name 1 of the inputs: expected x, found i1", |b| first_chunk(b).inputs[1].name = "x".into()),
            ("number of outputs: expected 3, found 4", |b| drop(first_chunk(b).outputs.pop())),
            ("number of inputs: expected 6, found 7", |b| drop(first_chunk(b).inputs.remove(3))),
            ("o0: expected fp16(1,4,1,2), found fp16(1,4,1,1)", |b| first_chunk(b).outputs[0].shape[3] = 2),
        ];
        for (expected, damage) in damages {
            let message = refusal(damage, &LoadOptions::default());
            assert_eq!(message, format!("c0: function `f40_1`: {expected}"));
        }
    }

    #[test]
    fn ports_bound_to_what_they_cannot_carry_are_refused() {
        type Damage = (&'static str, fn(&mut Bundle));
        let damages: [Damage; 8] = [
            ("i1: expected a binding", |b| first_chunk(b).inputs[1].binding = Binding::Logits),
            ("o2: expected a binding", |b| first_chunk(b).outputs[2].binding = Binding::NewRows { cache: 0 }),
            ("o1: expected [1, 6, 1, 1]", |b| {
                first_chunk(b).outputs[1].binding = Binding::Window { cache: 3 };
                b.caches[3].kind = lone_bundle::CacheKind::Conv { channels: 6, rows: 0 };
            }),
            ("i3: expected a binding", |b| {
                let columns = Span { start: 1, count: usize::MAX };
                first_chunk(b).inputs[3].binding =
                    Binding::Mask { rows: Rows::Context, window: None, columns };
            }),
            ("i3: expected a binding", |b| {
                let columns = Span { start: 0, count: 41 };
                first_chunk(b).inputs[3].binding =
                    Binding::Mask { rows: Rows::Ring(0), window: None, columns };
            }),
            ("i0: expected [1, 1, 2, 1]", |b| first_chunk(b).inputs[0].binding = Binding::Cos { rope: 0 }),
            ("number of outputs that renew cache 1: expected 1, found 0", |b| {
                first_chunk(b).outputs[3].binding = Binding::NewRows { cache: 2 };
            }),
            ("rows of cache 1 among the inputs, in order: expected 40, found 0", |b| {
                let rows = Span { start: 0, count: 40 };
                first_chunk(b).inputs[4].binding = Binding::Cache { cache: 2, rows };
            }),
        ];
        for (expected, damage) in damages {
            let message = refusal(damage, &LoadOptions::default());
            let expected = format!("c0: function `f40_1`: {expected}");
            assert!(message.starts_with(&expected), "{message:?} does not start with {expected:?}");
        }
    }

    #[test]
    fn a_function_that_one_graph_lacks_is_named() {
        let chunk = refusal(|b| drop(b.graphs[1].functions.remove(1)), &LoadOptions::default());
        assert_eq!(chunk, "c1 has no Prefill function for 8 tokens at context 40, and other graphs have");
        let head = refusal(|b| drop(b.graphs[3].functions.remove(1)), &LoadOptions::default());
        assert_eq!(head, "h6 has no Verify function for 4 tokens at context 0, and other graphs have");
    }

    #[test]
    fn what_is_asked_for_and_not_there_is_refused_with_what_is() {
        let options = LoadOptions { contexts: vec![41], ..LoadOptions::default() };
        let message = refusal(|_| (), &options);
        let expected = "c0 has no function for roles [], contexts [41]; it has Decode at 40, Prefill at 40, Verify at 40";
        assert_eq!(message, expected);
    }

    #[test]
    fn contexts_beyond_the_budget_are_not_loaded_and_refused_with_the_numbers_all_the_same() {
        let spec = Spec { contexts: vec![16, 40, 90], ..Spec::default() };
        let bytes = bundle(&spec).cache_bytes(40);
        let loaded = |kv_budget_bytes: u64| {
            let options = LoadOptions { kv_budget_bytes: Some(kv_budget_bytes), ..LoadOptions::default() };
            spec.load_with(&options)
        };
        let contexts = |budget| loaded(budget).contexts().collect::<Vec<_>>();
        assert_eq!((contexts(bytes), contexts(bytes - 1), contexts(0)), (vec![16, 40], vec![16], vec![16]));

        let refusal = |budget: u64, tokens| {
            let runtime = loaded(budget);
            let options = SessionOptions { kv_budget_bytes: Some(budget), ..SessionOptions::default() };
            let session = runtime.session(&options)?;
            Ok::<_, crate::EngineError>(session.check_prompt(&runtime, &vec![1; tokens])?)
        };
        refusal(bytes, 40).unwrap();
        let over = bundle(&spec).cache_bytes(90);
        assert_eq!(
            refusal(bytes, 41).unwrap_err().to_string(),
            format!("41 tokens need caches for 90, which take {over} bytes, and {bytes} are allowed")
        );
        assert!(refusal(0, 1).unwrap_err().to_string().ends_with("and 0 are allowed"));
    }

    #[test]
    fn masks_take_memory_at_the_first_pass_of_their_shape() {
        let spec = Spec { contexts: vec![16, 90], ..Spec::default() };
        let mut runtime = spec.load();
        let mut session = runtime.session(&SessionOptions::default()).unwrap();
        let mut taken = vec![runtime.buffer_bytes()];
        for tokens in [1, 1, 8, 1, 8] {
            session.extend(&mut runtime, &vec![1; tokens]).unwrap();
            taken.push(runtime.buffer_bytes());
        }
        let grows: Vec<bool> = taken.windows(2).map(|pair| pair[0] < pair[1]).collect();
        // A decode pass and one of eight tokens on the first rung, and one of eight on the second.
        assert_eq!(grows, [true, false, true, false, true], "{taken:?}");
    }

    #[test]
    fn only_the_roles_asked_for_are_loaded() {
        let spec = Spec::default();
        let options = LoadOptions { roles: vec![Role::Decode, Role::Prefill], ..LoadOptions::default() };
        let runtime = spec.load_with(&options);
        let shapes: Vec<_> = runtime.shapes().collect();
        assert_eq!(shapes, [(Role::Decode, 1, 40), (Role::Prefill, 8, 40)]);
        assert!(runtime.buffer_bytes() < spec.load().buffer_bytes());
    }
}
