//! From MIL to the graph: operations are brought to the few forms of [`Kind`], constants lose their operations.
//!
//! ```text
//! p, q = split(x, num_splits=2, axis=1)    p = slice(x), q = slice(x)
//! y = square(x)                            y = mul(x, x)
//! y = conv(x, w) with a kernel of 1        y = projection(x, w)
//! y = add(c, d) of constants               y is a constant
//! w = constexpr_lut_to_dense(i, t)         w is a constant, still palettized
//! ```
//! What has no form is left to the reference interpreter.

mod form;

use std::sync::Arc;

use lone_mil::ops::Call;
use lone_mil::{Arg, BackendError, BlobFile, Function, Keep, Literal, Op, ValueId, ValueType};

use super::constants::held;
use super::graph::{Constant, Graph};
use super::kind::Kind;
use super::package_error;
use super::palettes::Palettes;
use super::reference::{Isolated, Known};
use form::Forms;

/// Constants of at most so many elements are taken out of the weight file, so that rewrites can look at them.
const SMALL: usize = 16;

/// Tensors of more elements are refused, so that sizes computed from their products never overflow.
const MAX_ELEMENTS: usize = 1 << 36;

/// What is computed from constants is a constant only up to so many elements: those of the largest weights there are.
const MAX_FOLDED: usize = 1 << 28;

/// Reads `function`, whose package has been checked; the values of `keep` follow its outputs.
///
/// # Errors
/// [`BackendError::Unsupported`] naming an operation or input of no type known here, [`BackendError::NoValue`].
pub(crate) fn import(function: &Function, keep: &[&Keep], blobs: &BlobFile) -> Result<Graph, BackendError> {
    check_values(function)?;
    let inputs = function.inputs.iter().map(|&id| function.value(id));
    let graph =
        Graph::new(&function.name, inputs.map(|input| (input.name.clone(), input.ty.tensor().clone())));
    let mut import = Import { function, blobs, graph, ids: vec![None; function.values.len()] };
    for (&id, &imported) in function.inputs.iter().zip(&import.graph.inputs) {
        import.ids[id.index()] = Some(imported);
    }
    for op in &function.ops {
        import.op(op)?;
    }
    for &id in &function.outputs {
        let id = import.id(id);
        import.graph.output(id);
    }
    for &keep in keep {
        let id = function.value_named(&keep.value).ok_or_else(|| BackendError::NoValue(keep.clone()))?;
        let id = import.id(id);
        import.graph.output(id);
    }
    Ok(import.graph)
}

fn check_values(function: &Function) -> Result<(), BackendError> {
    for value in &function.values {
        let ty = value.ty.tensor();
        let what = match value.ty {
            ValueType::State(_) => format!("state<{ty}>"),
            ValueType::Tensor(_) if ty.shape.elements() > MAX_ELEMENTS => ty.to_string(),
            ValueType::Tensor(_) => continue,
        };
        let place = format!("function `{}`, value `{}`", function.name, value.name);
        return Err(BackendError::Unsupported { place, what });
    }
    Ok(())
}

struct Import<'a> {
    function: &'a Function,
    blobs: &'a BlobFile,
    graph: Graph,
    /// The values of `function` in `graph`.
    ids: Vec<Option<ValueId>>,
}

impl Import<'_> {
    fn op(&mut self, op: &Op) -> Result<(), BackendError> {
        if let ("const", Some(Some(Arg::Literal(literal)))) = (op.spec.name, op.args.first()) {
            let small = literal.ty.shape.elements() <= SMALL;
            let literal = if small { self.held(literal)? } else { literal.clone() };
            self.bind(op.outputs[0], |graph, name| graph.constant(name, Constant::Literal(literal)));
            return Ok(());
        }
        if let Some(palettes) = self.palettes(op) {
            let constant = Constant::Palettes(Box::new(palettes));
            self.bind(op.outputs[0], |graph, name| graph.constant(name, constant));
            return Ok(());
        }
        if op.outputs.len() == 1 && op.reads().all(|&id| self.constant(id).is_some()) {
            self.check_folded(op)?;
            let literal = self.isolated(op)?.0.literal()?;
            self.bind(op.outputs[0], |graph, name| graph.constant(name, Constant::Literal(literal)));
            return Ok(());
        }
        let call = Call::new(op.spec, self.function, &op.args).map_err(package_error)?;
        for (output, &id) in op.outputs.iter().enumerate() {
            let forms = Forms { call: &call, op, graph: &self.graph, ids: &self.ids };
            let form = forms.of(output).map_err(package_error)?;
            let (kind, inputs) = match form {
                Some(form) => form,
                None => {
                    let (isolated, inputs) = self.isolated(op)?;
                    (Kind::Reference(Arc::new(isolated)), inputs.into_iter().map(|id| self.id(id)).collect())
                }
            };
            let ty = self.function.value(id).ty.tensor().clone();
            self.bind(id, |graph, name| graph.push(name, kind, inputs, ty));
        }
        Ok(())
    }

    /// The weight that `op` makes, if it can stay palettized.
    fn palettes(&self, op: &Op) -> Option<Palettes> {
        let argument = |name| op.args.get(op.spec.position(name)?)?.as_ref();
        let literal = |name| match argument(name)? {
            Arg::Literal(literal) => Some(literal),
            Arg::Value(id) => match self.constant(*id)? {
                Constant::Literal(literal) => Some(literal),
                Constant::Palettes(_) => None,
            },
            Arg::Values(_) => None,
        };
        match op.spec.name {
            "constexpr_lut_to_dense" => Palettes::of(literal("indices")?, literal("lut")?),
            "constexpr_blockwise_shift_scale" => {
                let Arg::Value(data) = argument("data")? else { return None };
                let Constant::Palettes(palettes) = self.constant(*data)? else { return None };
                palettes.scaled(literal("scale")?).filter(|_| argument("offset").is_none())
            }
            _ => None,
        }
    }

    fn check_folded(&self, op: &Op) -> Result<(), BackendError> {
        let ty = self.function.value(op.outputs[0]).ty.tensor();
        if ty.shape.elements() <= MAX_FOLDED {
            return Ok(());
        }
        let place = format!("function `{}`, operation `{}`", self.function.name, op.name);
        Err(BackendError::Unsupported { place, what: format!("a constant {ty}") })
    }

    /// `op` by itself, for the reference interpreter.
    fn isolated(&self, op: &Op) -> Result<(Isolated, Vec<ValueId>), BackendError> {
        let one = |id: &ValueId| match self.constant(*id) {
            Some(constant) => Ok(Known::Constant(constant.held(self.blobs).map_err(package_error)?)),
            None => Ok(Known::Computed(self.function.value(*id).ty.tensor().clone())),
        };
        Isolated::new(self.function, op, |arg| match arg {
            Arg::Value(id) => Ok(vec![one(id)?]),
            Arg::Values(ids) => ids.iter().map(one).collect(),
            Arg::Literal(literal) => Ok(vec![Known::Constant(self.held(literal)?)]),
        })
    }

    fn held(&self, literal: &Literal) -> Result<Literal, BackendError> {
        held(literal, self.blobs).map_err(package_error)
    }

    /// Makes the value that `id` becomes, under its name.
    fn bind(&mut self, id: ValueId, make: impl FnOnce(&mut Graph, String) -> ValueId) {
        let name = self.function.value(id).name.clone();
        self.ids[id.index()] = Some(make(&mut self.graph, name));
    }

    fn id(&self, id: ValueId) -> ValueId {
        self.ids[id.index()].expect("values are defined before they are used")
    }

    fn constant(&self, id: ValueId) -> Option<&Constant> {
        self.graph.get(self.id(id)).constant.as_ref()
    }
}
