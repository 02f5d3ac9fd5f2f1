//! Does a function, as the backend knows it, have the ports bundle.json says, bound to what they can be bound to?
//!
//! Checked once at load, so that whoever fills or reads a port later needs to doubt nothing.

use lone_bundle::{Binding, Bundle, CacheKind, Graph, GraphFunction, GraphKind, Port, Rows, Span};
use lone_mil::{Signature, TensorType};

use crate::LoadError;

/// A function of a graph, and how it is called in errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contract<'a> {
    pub(crate) bundle: &'a Bundle,
    pub(crate) graph: &'a Graph,
    pub(crate) function: &'a GraphFunction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Input,
    Output,
}

impl Contract<'_> {
    /// Checks all ports; outputs of `signature` after the declared ones are `kept` hidden states.
    pub(crate) fn check(&self, signature: &Signature, kept: &[String]) -> Result<(), LoadError> {
        let GraphFunction { inputs, outputs, tokens, .. } = self.function;
        let hidden = vec![1, self.bundle.model.hidden_size, 1, *tokens];
        let kept = kept.iter().map(|name| (name, &hidden));
        let declared = |ports| Iterator::map(<[Port]>::iter(ports), |port| (&port.name, &port.shape));
        self.check_side("inputs", declared(inputs).collect(), &signature.inputs)?;
        self.check_side("outputs", declared(outputs).chain(kept).collect(), &signature.outputs)?;
        for (side, ports) in [(Side::Input, inputs), (Side::Output, outputs)] {
            for port in ports {
                self.check_binding(side, port)?;
            }
        }
        self.check_flow()
    }

    /// What is wrong with `port`.
    pub(crate) fn refuse(
        &self,
        port: impl Into<String>,
        expected: impl ToString,
        found: impl ToString,
    ) -> LoadError {
        LoadError::Port {
            graph: self.graph.package.clone(),
            function: self.function.name.clone(),
            port: port.into(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    fn check_side(
        &self,
        side: &str,
        expected: Vec<(&String, &Vec<usize>)>,
        found: &[lone_mil::Port],
    ) -> Result<(), LoadError> {
        if expected.len() != found.len() {
            return Err(self.refuse(format!("number of {side}"), expected.len(), found.len()));
        }
        for (i, ((name, shape), found)) in expected.into_iter().zip(found).enumerate() {
            if *name != found.name {
                return Err(self.refuse(format!("name {i} of the {side}"), name, &found.name));
            }
            let expected = TensorType::f16(shape.clone());
            if expected != found.ty {
                return Err(self.refuse(name, expected, &found.ty));
            }
        }
        Ok(())
    }

    fn check_binding(&self, side: Side, port: &Port) -> Result<(), LoadError> {
        let expected = self.bound_shape(side, port.binding).ok_or_else(|| {
            self.refuse(&port.name, "a binding a port of this kind can have", format!("{:?}", port.binding))
        })?;
        if expected != port.shape || expected.contains(&0) {
            let expected = format!("{expected:?}, none of it 0, for {:?}", port.binding);
            return Err(self.refuse(&port.name, expected, format!("{:?}", port.shape)));
        }
        Ok(())
    }

    /// The shape a port bound to `binding` has; `None` if none could be bound so.
    fn bound_shape(&self, side: Side, binding: Binding) -> Option<Vec<usize>> {
        let tokens = self.function.tokens;
        match (side, self.graph.kind, binding) {
            (_, GraphKind::Chunk { .. }, Binding::Hidden) | (Side::Input, _, Binding::Hidden) => {
                Some(vec![1, self.bundle.model.hidden_size, 1, tokens])
            }
            (Side::Output, GraphKind::Head { vocabulary }, Binding::Logits) => {
                Some(vec![1, vocabulary.count, 1, tokens])
            }
            (_, GraphKind::Head { .. }, _) => None,
            (Side::Input, _, Binding::Cos { rope } | Binding::Sin { rope }) => {
                Some(vec![1, 1, self.bundle.ropes[rope].inv_freq.len().checked_mul(2)?, tokens])
            }
            (Side::Input, _, Binding::Mask { rows, columns, .. }) => {
                let width = self.rows(rows)?.checked_add(tokens)?;
                is_within(columns, width).then(|| vec![1, 1, tokens, columns.count])
            }
            (Side::Input, _, Binding::Cache { cache, rows }) => self.cache_shape(cache, rows),
            (Side::Output, _, Binding::NewRows { cache }) => match self.bundle.caches[cache].kind {
                CacheKind::Key { kv_heads, head_dim, .. } | CacheKind::Value { kv_heads, head_dim, .. } => {
                    Some(vec![1, kv_heads, tokens, head_dim])
                }
                CacheKind::Conv { .. } => None,
            },
            (Side::Output, _, Binding::Window { cache }) => match self.bundle.caches[cache].kind {
                CacheKind::Conv { channels, rows } => Some(vec![1, channels, rows.checked_add(tokens)?, 1]),
                _ => None,
            },
            _ => None,
        }
    }

    fn cache_shape(&self, cache: usize, segment: Span) -> Option<Vec<usize>> {
        match self.bundle.caches[cache].kind {
            CacheKind::Key { rows, kv_heads, head_dim } | CacheKind::Value { rows, kv_heads, head_dim } => {
                is_within(segment, self.rows(rows)?).then(|| vec![1, kv_heads, segment.count, head_dim])
            }
            CacheKind::Conv { channels, rows } => {
                (segment == Span { start: 0, count: rows }).then(|| vec![1, channels, rows, 1])
            }
        }
    }

    /// T; `None` for a ring without rows.
    fn rows(&self, rows: Rows) -> Option<usize> {
        (rows != Rows::Ring(0)).then(|| rows.count(self.function.ctx))
    }

    /// One hidden state in, one result out, and every cache of the graph's layers read and renewed exactly once.
    fn check_flow(&self) -> Result<(), LoadError> {
        let GraphFunction { inputs, outputs, .. } = self.function;
        let result = match self.graph.kind {
            GraphKind::Chunk { .. } => Binding::Hidden,
            GraphKind::Head { .. } => Binding::Logits,
        };
        for (what, ports, binding) in
            [("hidden inputs", inputs, Binding::Hidden), ("results", outputs, result)]
        {
            let count = ports.iter().filter(|port| port.binding == binding).count();
            if count != 1 {
                return Err(self.refuse(format!("number of {what}"), 1, count));
            }
        }
        for (cache, kept) in self.bundle.caches.iter().enumerate() {
            let belongs = match self.graph.kind {
                GraphKind::Chunk { layers } => (layers.start..layers.end()).contains(&kept.layer),
                GraphKind::Head { .. } => false,
            };
            let renewed = outputs.iter().filter(|port| match port.binding {
                Binding::NewRows { cache: of } | Binding::Window { cache: of } => of == cache,
                _ => false,
            });
            let renewed = renewed.count();
            if renewed != usize::from(belongs) {
                let what = format!("number of outputs that renew cache {cache}");
                return Err(self.refuse(what, usize::from(belongs), renewed));
            }
            self.check_segments(cache, belongs)?;
        }
        Ok(())
    }

    fn check_segments(&self, cache: usize, belongs: bool) -> Result<(), LoadError> {
        let expected = match self.bundle.caches[cache].kind {
            CacheKind::Key { rows, .. } | CacheKind::Value { rows, .. } => rows.count(self.function.ctx),
            CacheKind::Conv { rows, .. } => rows,
        };
        let expected = if belongs { expected } else { 0 };
        let mut covered = 0;
        for segment in cache_segments(self.function, cache) {
            if segment.start != covered {
                break;
            }
            covered = segment.end();
        }
        let segments = cache_segments(self.function, cache);
        if covered != expected || segments.map(|segment| segment.count).sum::<usize>() != expected {
            let what = format!("rows of cache {cache} among the inputs, in order");
            return Err(self.refuse(what, expected, covered));
        }
        Ok(())
    }
}

/// The rows of each input that is a part of cache number `cache`, in the order of the inputs.
pub(crate) fn cache_segments(function: &GraphFunction, cache: usize) -> impl Iterator<Item = Span> {
    function.inputs.iter().filter_map(move |port| match port.binding {
        Binding::Cache { cache: of, rows } if of == cache => Some(rows),
        _ => None,
    })
}

fn is_within(part: Span, whole: usize) -> bool {
    part.start.checked_add(part.count).is_some_and(|end| end <= whole)
}
