//! Runs the fake model's graphs on the buffers it is given, reading them by their bindings.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use half::f16;
use lone_bundle::{Binding, Bundle, GraphFunction, GraphKind};
use lone_mil::{
    Backend, BackendError, Keep, LoadOptions, Model, Port, Signature, TensorMut, TensorRef, TensorType,
};

use super::{HEAD_DIM, HEADS, HIDDEN, TAPS};
use super::{attend, convolve, graph_index, logit, norm, rotate, rounded};

/// Runs the graphs of one bundle.
pub(crate) struct FakeBackend {
    bundle: Bundle,
    /// Makes the next run fail.
    fail: Arc<AtomicBool>,
}

impl FakeBackend {
    pub(crate) fn new(bundle: Bundle) -> Self {
        FakeBackend { bundle, fail: Arc::default() }
    }

    /// Set it to make the next run of any model fail.
    pub(crate) fn failure(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.fail)
    }
}

impl Backend for FakeBackend {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn load(&self, package: &Path, options: &LoadOptions) -> Result<Box<dyn Model>, BackendError> {
        let graph = &self.bundle.graphs[graph_index(&self.bundle, package)];
        let loaded = graph.functions.iter().filter(|function| options.functions.contains(&function.name));
        let functions = loaded.map(|function| {
            let ports = |ports: &[lone_bundle::Port]| {
                let port = |port: &lone_bundle::Port| Port {
                    name: port.name.clone(),
                    ty: TensorType::f16(port.shape.clone()),
                };
                ports.iter().map(port).collect::<Vec<_>>()
            };
            let kept = options.keep.iter().filter(|keep| keep.function == function.name);
            let kept = kept.map(|Keep { value, .. }| Port {
                name: value.clone(),
                ty: TensorType::f16([1, HIDDEN, 1, function.tokens]),
            });
            let outputs = ports(&function.outputs).into_iter().chain(kept).collect();
            (function.clone(), Signature { inputs: ports(&function.inputs), outputs })
        });
        let functions = functions.collect();
        Ok(Box::new(FakeModel { kind: graph.kind, functions, fail: self.failure() }))
    }
}

struct FakeModel {
    kind: GraphKind,
    functions: Vec<(GraphFunction, Signature)>,
    fail: Arc<AtomicBool>,
}

impl Model for FakeModel {
    fn signature(&self, function: &str) -> Result<&Signature, BackendError> {
        let found = self.functions.iter().find(|(known, _)| known.name == function);
        let no_function = || BackendError::NoFunction { function: function.into(), available: Vec::new() };
        found.map(|(_, signature)| signature).ok_or_else(no_function)
    }

    fn run(
        &mut self,
        function: &str,
        inputs: &[TensorRef<'_>],
        outputs: &mut [TensorMut<'_>],
    ) -> Result<(), BackendError> {
        self.signature(function)?.check(function, inputs, outputs)?;
        if self.fail.swap(false, Ordering::Relaxed) {
            return Err(BackendError::Run { function: function.into(), what: "told to".into() });
        }
        let (function, signature) = self.functions.iter().find(|(known, _)| known.name == function).unwrap();
        let pass = Pass { function, inputs };
        let results = match self.kind {
            GraphKind::Chunk { layers } => pass.chunk(layers.start),
            GraphKind::Head { vocabulary } => pass.head(vocabulary.start, vocabulary.count),
        };
        for (port, output) in signature.outputs.iter().zip(outputs) {
            let TensorMut::F16(output) = output else { panic!("all ports are fp16") };
            let declared = function.outputs.iter().find(|declared| declared.name == port.name);
            let wanted = declared.map_or(Wanted::Value(&port.name), |port| Wanted::Bound(port.binding));
            let (_, values) = results.iter().find(|(name, _)| *name == wanted).unwrap();
            for (to, from) in output.iter_mut().zip(values) {
                *to = f16::from_f64(*from);
            }
        }
        Ok(())
    }
}

#[derive(PartialEq)]
enum Wanted<'a> {
    Bound(Binding),
    Value(&'a str),
}

type Results<'a> = Vec<(Wanted<'a>, Vec<f64>)>;

struct Pass<'a> {
    function: &'a GraphFunction,
    inputs: &'a [TensorRef<'a>],
}

impl Pass<'_> {
    /// All inputs whose binding `is` so, one after the other.
    fn inputs(&self, is: impl Fn(Binding) -> bool) -> Vec<Vec<f64>> {
        let ports = self.function.inputs.iter().zip(self.inputs);
        let bound = ports.filter(|(port, _)| is(port.binding));
        bound
            .map(|(_, input)| match input {
                TensorRef::F16(data) => data.iter().map(|x| x.to_f64()).collect(),
                _ => panic!("all ports are fp16"),
            })
            .collect()
    }

    fn hidden(&self) -> Vec<[f64; HIDDEN]> {
        let data = &self.inputs(|binding| binding == Binding::Hidden)[0];
        let tokens = self.function.tokens;
        (0..tokens).map(|column| std::array::from_fn(|row| data[row * tokens + column])).collect()
    }

    fn head(&self, start: usize, count: usize) -> Results<'_> {
        let hidden = self.hidden();
        let logits = (start..start + count).flat_map(|token| hidden.iter().map(move |x| logit(token, x)));
        vec![(Wanted::Bound(Binding::Logits), logits.collect())]
    }

    fn chunk(&self, layer: usize) -> Results<'_> {
        let chunk = layer / 2;
        let mut results = Results::new();
        let mut hidden = self.hidden();
        self.convolution(&mut hidden, layer, &mut results);
        results.push((Wanted::Value("between"), columns(&hidden)));
        self.attention(&mut hidden, chunk, &mut results);
        results.push((Wanted::Value("raw"), columns(&hidden)));
        if chunk == 1 {
            hidden.iter_mut().for_each(|hidden| *hidden = norm(*hidden));
        }
        results.push((Wanted::Bound(Binding::Hidden), columns(&hidden)));
        results
    }

    fn convolution(&self, hidden: &mut [[f64; HIDDEN]], layer: usize, results: &mut Results<'_>) {
        let cache = 3 * (layer / 2);
        let past =
            &self.inputs(|binding| matches!(binding, Binding::Cache { cache: of, .. } if of == cache))[0];
        let rows = TAPS - 1 + hidden.len();
        let mut window = vec![0.0; HIDDEN * rows];
        for channel in 0..HIDDEN {
            let window = &mut window[channel * rows..][..rows];
            window[..TAPS - 1].copy_from_slice(&past[channel * (TAPS - 1)..][..TAPS - 1]);
            for (position, hidden) in hidden.iter_mut().enumerate() {
                window[TAPS - 1 + position] = rounded(hidden[channel]);
                let inputs = std::array::from_fn(|tap| window[position + tap]);
                hidden[channel] += convolve(channel, layer, inputs);
            }
        }
        results.push((Wanted::Bound(Binding::Window { cache }), window));
    }

    fn attention(&self, hidden: &mut [[f64; HIDDEN]], chunk: usize, results: &mut Results<'_>) {
        let tokens = hidden.len();
        let one = |is: &dyn Fn(Binding) -> bool| self.inputs(is).remove(0);
        let cos = one(&|binding| binding == Binding::Cos { rope: chunk });
        let sin = one(&|binding| binding == Binding::Sin { rope: chunk });
        let masks = self.inputs(|binding| matches!(binding, Binding::Mask { .. }));
        let mask = |query: usize| {
            masks.iter().flat_map(move |mask| mask.chunks(mask.len() / tokens).nth(query).unwrap())
        };
        let [mut keys, mut values] = [3 * chunk + 1, 3 * chunk + 2].map(|cache| {
            let segments =
                self.inputs(|binding| matches!(binding, Binding::Cache { cache: of, .. } if of == cache));
            let head = |head: usize| -> Vec<f64> {
                segments
                    .iter()
                    .flat_map(|part| part.chunks(part.len() / HEADS).nth(head).unwrap())
                    .copied()
                    .collect()
            };
            [head(0), head(1)]
        });
        let past = keys[0].len();
        let rotated = |x: &[f64; HIDDEN], head: usize, column: usize| {
            let pair = [x[2 * head], x[2 * head + 1]];
            let [first, second] = [column, tokens + column];
            assert_eq!((cos[first], sin[first]), (cos[second], sin[second]), "tables are concat(f, f)");
            rotate(pair, cos[first], sin[first])
        };
        for head in 0..HEADS {
            for (column, x) in hidden.iter().enumerate() {
                keys[head].extend(rotated(x, head, column).map(rounded));
                values[head].extend([2 * head, 2 * head + 1].map(|row| rounded(x[row])));
            }
        }
        let before = hidden.to_vec();
        for (query, (out, x)) in hidden.iter_mut().zip(&before).enumerate() {
            for head in 0..HEADS {
                let [a, b] = rotated(x, head, query);
                let pairs = keys[head].chunks(HEAD_DIM).zip(values[head].chunks(HEAD_DIM));
                let scored = pairs
                    .zip(mask(query))
                    .map(|((key, value), mask)| (a * key[0] + b * key[1] + mask, [value[0], value[1]]));
                let attended = attend(scored);
                for element in 0..HEAD_DIM {
                    out[HEAD_DIM * head + element] += attended[element];
                }
            }
        }
        for (cache, rows) in [(3 * chunk + 1, keys), (3 * chunk + 2, values)] {
            let new = rows.iter().flat_map(|rows| rows[past..].to_vec()).collect();
            results.push((Wanted::Bound(Binding::NewRows { cache }), new));
        }
    }
}

/// `(D, S)` from columns.
fn columns(hidden: &[[f64; HIDDEN]]) -> Vec<f64> {
    (0..HIDDEN).flat_map(|row| hidden.iter().map(move |hidden| hidden[row])).collect()
}
