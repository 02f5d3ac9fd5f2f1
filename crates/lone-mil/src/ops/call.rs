//! An operation together with the types and constants of its arguments: all that a type rule may look at.
//!
//! Making a [`Call`] checks what [`Param`](super::Param) says of each argument: presence, element type, rank,
//! constness. Defaults are filled in, so rules never ask whether a parameter was written out.

use std::fmt::Display;

use super::param::{Fallback, Param, Presence};
use super::{OpError, OpSpec};
use crate::program::{Arg, Def, Function, Literal, ValueId};
use crate::{DType, Shape, TensorType, ValueType};

/// An operation with what is known of its arguments before anything runs.
#[derive(Debug, Clone)]
pub struct Call {
    spec: &'static OpSpec,
    /// One entry per parameter; empty where an optional one is absent.
    args: Vec<Vec<Operand>>,
}

/// One argument.
#[derive(Debug, Clone)]
struct Operand {
    ty: ValueType,
    constant: bool,
    literal: Option<Literal>,
}

impl Operand {
    fn of_value(function: &Function, id: ValueId) -> Self {
        let value = function.value(id);
        let constant = match value.def {
            Def::Op { op, .. } => function.ops[op].spec.is_constant(),
            Def::Input(_) => false,
        };
        Operand { ty: value.ty.clone(), constant, literal: function.constant(id).cloned() }
    }

    fn of_literal(literal: Literal) -> Self {
        Operand { ty: literal.ty.clone().into(), constant: true, literal: Some(literal) }
    }
}

impl Call {
    /// The call of `spec` with `args`, one per parameter, whose values are `function`'s.
    ///
    /// # Errors
    /// [`OpError`] naming the first argument outside its parameter's domain.
    pub fn new(spec: &'static OpSpec, function: &Function, args: &[Option<Arg>]) -> Result<Self, OpError> {
        let mut call = Call { spec, args: Vec::with_capacity(spec.params.len()) };
        for (i, param) in spec.params.iter().enumerate() {
            let operands = match args.get(i).and_then(Option::as_ref) {
                Some(Arg::Value(id)) => vec![Operand::of_value(function, *id)],
                Some(Arg::Values(ids)) => ids.iter().map(|&id| Operand::of_value(function, id)).collect(),
                Some(Arg::Literal(literal)) => vec![Operand::of_literal(literal.clone())],
                None => call.absent(param)?.map(Operand::of_literal).into_iter().collect(),
            };
            if args.get(i).is_some_and(Option::is_some) {
                call.check(param, &operands)?;
            }
            call.args.push(operands);
        }
        Ok(call)
    }

    /// The types of the results.
    ///
    /// # Errors
    /// [`OpError`] naming the parameter that breaks the operation's type rule.
    pub fn infer(&self) -> Result<Vec<TensorType>, OpError> {
        let types = (self.spec.infer)(self)?;
        for ty in &types {
            let rank_fits = self.spec.is_constant() || ty.shape.len() <= MAX_RANK;
            if !rank_fits || !is_sized(&ty.shape) {
                let expected = format!("rank at most {MAX_RANK} and dimensions of at least 1");
                return Err(OpError::result(self.spec.name, expected, ty));
            }
        }
        Ok(types)
    }

    /// The row of the operation that is called.
    pub fn spec(&self) -> &'static OpSpec {
        self.spec
    }

    /// The literal that the absence of `param` stands for, given the parameters before it.
    ///
    /// # Errors
    /// [`OpError::Missing`] if it must be given.
    pub(crate) fn absent(&self, param: &Param) -> Result<Option<Literal>, OpError> {
        let fallback = match param.presence {
            Presence::Required => return Err(OpError::Missing { op: self.spec.name, param: param.name }),
            Presence::Optional => return Ok(None),
            Presence::Default(fallback) => fallback,
        };
        Ok(Some(match fallback {
            Fallback::Int(value) => Literal::int(value),
            Fallback::Bool(value) => Literal::bool(value),
            Fallback::Str(value) => Literal::string(value),
            Fallback::Float(value) => {
                let dtype = self.dtype(param.like.expect("a float fallback is like another parameter"));
                Literal::float(dtype, value).expect("the domain of what it is like has floats only")
            }
            Fallback::Spatial { value, per_axis } => {
                Literal::ints(&vec![value; self.shape("x").len().saturating_sub(2) * per_axis])
            }
        }))
    }

    fn check(&self, param: &'static Param, operands: &[Operand]) -> Result<(), OpError> {
        let domain = param.domain;
        let wrong = |expected: &dyn Display, found: &dyn Display| {
            Err(OpError::param(self.spec.name, param.name, expected, found))
        };
        if operands.is_empty() || (operands.len() > 1 && !param.variadic) {
            let expected = if param.variadic { "one value or more" } else { "one value" };
            return wrong(&expected, &operands.len());
        }
        for operand in operands {
            let ty = operand.ty.tensor();
            let kind_fits = matches!(operand.ty, ValueType::State(_)) == domain.state;
            let rank_fits = domain.rank.is_none_or(|rank| ty.shape.len() == rank);
            if !kind_fits || !rank_fits || !domain.dtypes.contains(&ty.dtype) {
                return wrong(&domain.name, &operand.ty);
            }
            if operand.literal.as_ref().is_some_and(|literal| !literal.is_consistent()) {
                return wrong(&format!("as many elements as {ty} has"), &"another number of them");
            }
            if !is_sized(&ty.shape) {
                return wrong(&"dimensions of at least 1", &operand.ty);
            }
            if !self.spec.is_constant() && ty.shape.len() > MAX_RANK {
                return wrong(&format!("rank at most {MAX_RANK}"), &operand.ty);
            }
            if param.constant && !operand.constant {
                return wrong(&"a constant", &format!("a computed {}", operand.ty));
            }
            if let Some(other) = param.like.filter(|&other| self.dtype(other) != ty.dtype) {
                return wrong(&format!("{}, the type of `{other}`", self.dtype(other)), &operand.ty);
            }
        }
        let first = operands[0].ty.tensor().dtype;
        match operands.iter().find(|operand| operand.ty.tensor().dtype != first) {
            Some(other) => wrong(&format!("all of {first}"), &other.ty),
            None => Ok(()),
        }
    }
}

/// Whether a shape has elements, and so few that their bytes can be counted whatever their type.
pub(crate) fn is_sized(shape: &Shape) -> bool {
    shape.checked_elements().is_some_and(|n| n > 0 && n <= isize::MAX as usize / 16)
}

/// The most axes an ordinary tensor can have; only constants that feed `constexpr_*` may have more.
pub(super) const MAX_RANK: usize = 5;

/// What type rules, evaluation and compilers ask of arguments, by parameter name.
///
/// Each panics on a name that the operation does not have, or whose parameter is absent where a type is asked for.
/// Those that give values fail with [`OpError::Param`] when a constant is held in a blob, or is the wrong one.
#[expect(clippy::missing_errors_doc, reason = "the same for all, as said above")]
impl Call {
    fn operands(&self, name: &str) -> &[Operand] {
        &self.args[self.spec.position(name).expect("rules name their own parameters")]
    }

    /// Whether the parameter was given, or has a default.
    pub fn has(&self, name: &str) -> bool {
        !self.operands(name).is_empty()
    }

    /// The type of a parameter that is present.
    pub fn ty(&self, name: &str) -> &TensorType {
        self.operands(name)[0].ty.tensor()
    }

    /// The element type of a parameter that is present.
    pub fn dtype(&self, name: &str) -> DType {
        self.ty(name).dtype
    }

    /// The shape of a parameter that is present.
    pub fn shape(&self, name: &str) -> &Shape {
        &self.ty(name).shape
    }

    /// The types of all values of a variadic parameter.
    pub fn types(&self, name: &str) -> impl ExactSizeIterator<Item = &TensorType> + Clone {
        self.operands(name).iter().map(|operand| operand.ty.tensor())
    }

    /// Whether all values of the parameter are known when the program is compiled.
    pub fn is_constant(&self, name: &str) -> bool {
        self.operands(name).iter().all(|operand| operand.constant)
    }

    /// The literal behind a parameter, if it is known and held in place or in a blob.
    pub fn literal(&self, name: &str) -> Option<&Literal> {
        self.operands(name).first().and_then(|operand| operand.literal.as_ref())
    }

    /// The values of an integer or bool parameter; `None` if it is absent.
    pub fn opt_ints(&self, name: &'static str) -> Result<Option<Vec<i64>>, OpError> {
        if !self.has(name) {
            return Ok(None);
        }
        let known = self.literal(name).and_then(Literal::to_ints);
        known.map(Some).ok_or_else(|| self.wrong(name, "a constant held in the program", "one that is not"))
    }

    /// The values of an integer or bool parameter; none if it is absent.
    pub fn ints(&self, name: &'static str) -> Result<Vec<i64>, OpError> {
        Ok(self.opt_ints(name)?.unwrap_or_default())
    }

    /// The value of an integer scalar.
    pub fn int(&self, name: &'static str) -> Result<i64, OpError> {
        let ints = self.ints(name)?;
        ints.first().copied().ok_or_else(|| self.wrong(name, "a scalar", "no value"))
    }

    /// The value of a bool scalar.
    pub fn bool(&self, name: &'static str) -> Result<bool, OpError> {
        Ok(self.int(name)? != 0)
    }

    /// The value of a string scalar.
    pub fn str(&self, name: &'static str) -> Result<&str, OpError> {
        let known = self.literal(name).and_then(Literal::as_str);
        known.ok_or_else(|| self.wrong(name, "a string held in the program", "none"))
    }

    /// `axis` counted from the front, where `rank` axes are.
    pub fn normal_axis(&self, name: &'static str, axis: i64, rank: usize) -> Result<usize, OpError> {
        let from_front = if axis < 0 { axis + rank as i64 } else { axis };
        match usize::try_from(from_front) {
            Ok(axis) if axis < rank => Ok(axis),
            _ => Err(self.wrong(name, format!("an axis of {rank}"), axis)),
        }
    }

    /// The axis that a scalar parameter names.
    pub fn axis(&self, name: &'static str, rank: usize) -> Result<usize, OpError> {
        self.normal_axis(name, self.int(name)?, rank)
    }

    /// The distinct axes that a vector parameter names, or all of them if it is absent.
    pub fn axes(&self, name: &'static str, rank: usize) -> Result<Vec<usize>, OpError> {
        let Some(named) = self.opt_ints(name)? else {
            return Ok((0..rank).collect());
        };
        let mut axes = Vec::with_capacity(named.len());
        for axis in named {
            let axis = self.normal_axis(name, axis, rank)?;
            if axes.contains(&axis) {
                return Err(self.wrong(name, "distinct axes", format!("{axis} twice")));
            }
            axes.push(axis);
        }
        Ok(axes)
    }

    /// A vector parameter with exactly `count` entries.
    pub fn ints_of_len(&self, name: &'static str, count: usize) -> Result<Vec<i64>, OpError> {
        let ints = self.ints(name)?;
        if ints.len() == count {
            Ok(ints)
        } else {
            Err(self.wrong(name, format!("{count} values"), ints.len()))
        }
    }

    /// `param` was expected to be one thing and is another.
    pub(super) fn wrong(&self, param: &'static str, expected: impl Display, found: impl Display) -> OpError {
        OpError::param(self.spec.name, param, expected, found)
    }

    /// `param` has a type that does not fit the others.
    pub(super) fn wrong_type(&self, param: &'static str, expected: impl Display) -> OpError {
        self.wrong(param, expected, self.ty(param))
    }
}

/// The numpy broadcast of two shapes, if they go together.
pub(super) fn broadcast(x: &[usize], y: &[usize]) -> Option<Vec<usize>> {
    let rank = x.len().max(y.len());
    let dim = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
    (0..rank)
        .map(|axis| match (dim(x, axis), dim(y, axis)) {
            (a, b) if a == b => Some(a),
            (1, b) => Some(b),
            (a, 1) => Some(a),
            _ => None,
        })
        .collect()
}
