//! Patterns of operations, written as the formula they stand for.
//!
//! ```text
//! let x = || any("x");
//! let silu = x() / (number(1.0) + exp(number(-1.0) * x()));
//! ```
//! A name stands for one value wherever it is written. `+`, `*` and the like match in either order.

use std::ops::{Add, Div, Mul, Sub};

use lone_mil::ValueId;

use super::graph::Graph;
use super::kind::{Binary, Kind, Reduction, Unary};

/// A tree of operations with names at its leaves.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    form: Form,
    name: Option<&'static str>,
}

#[derive(Debug, Clone)]
enum Form {
    Any,
    Constant,
    Number(f32),
    Node { is: fn(&Kind) -> bool, inputs: Vec<Pattern>, commutes: bool },
}

/// What the names of a pattern stand for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Match {
    names: Vec<(&'static str, ValueId)>,
}

impl Match {
    /// The value of a name that the pattern has.
    pub(crate) fn get(&self, name: &str) -> ValueId {
        self.find(name).expect("rewrites ask for names of their own pattern")
    }

    fn find(&self, name: &str) -> Option<ValueId> {
        self.names.iter().find(|(known, _)| *known == name).map(|&(_, id)| id)
    }
}

impl Pattern {
    /// The same pattern, its value known as `name`.
    pub(crate) fn named(self, name: &'static str) -> Self {
        Pattern { name: Some(name), ..self }
    }

    /// What the names stand for if `id` is computed this way.
    pub(crate) fn find(&self, graph: &Graph, id: ValueId) -> Option<Match> {
        self.extend(graph, id, Match::default())
    }

    fn extend(&self, graph: &Graph, id: ValueId, mut found: Match) -> Option<Match> {
        if let Some(name) = self.name {
            match found.find(name) {
                Some(other) if other != id => return None,
                Some(_) => {}
                None => found.names.push((name, id)),
            }
        }
        match &self.form {
            Form::Any => Some(found),
            Form::Constant => graph.get(id).constant.is_some().then_some(found),
            Form::Number(number) => (graph.number(id)? == *number).then_some(found),
            Form::Node { is, inputs, commutes } => {
                let (kind, args) = graph.made_by(id)?;
                if !is(kind) || args.len() != inputs.len() {
                    return None;
                }
                let in_order = |args: &[ValueId]| {
                    let mut pairs = inputs.iter().zip(args);
                    pairs.try_fold(found.clone(), |found, (input, &arg)| input.extend(graph, arg, found))
                };
                in_order(args).or_else(|| commutes.then(|| in_order(&[args[1], args[0]]))?)
            }
        }
    }
}

fn leaf(form: Form) -> Pattern {
    Pattern { form, name: None }
}

/// Any value.
pub(crate) fn any(name: &'static str) -> Pattern {
    leaf(Form::Any).named(name)
}

/// A constant.
pub(crate) fn constant(name: &'static str) -> Pattern {
    leaf(Form::Constant).named(name)
}

/// A constant of one element that is just `value`.
pub(crate) fn number(value: f32) -> Pattern {
    leaf(Form::Number(value))
}

fn unary(is: fn(&Kind) -> bool, x: Pattern) -> Pattern {
    leaf(Form::Node { is, inputs: vec![x], commutes: false })
}

fn binary(is: fn(&Kind) -> bool, x: Pattern, y: Pattern) -> Pattern {
    leaf(Form::Node { is, inputs: vec![x, y], commutes: true })
}

fn in_order(is: fn(&Kind) -> bool, x: Pattern, y: Pattern) -> Pattern {
    leaf(Form::Node { is, inputs: vec![x, y], commutes: false })
}

pub(crate) fn abs(x: Pattern) -> Pattern {
    unary(|kind| *kind == Kind::Unary(Unary::Abs), x)
}

pub(crate) fn exp(x: Pattern) -> Pattern {
    unary(|kind| *kind == Kind::Unary(Unary::Exp), x)
}

pub(crate) fn silu(x: Pattern) -> Pattern {
    unary(|kind| *kind == Kind::Unary(Unary::Silu), x)
}

pub(crate) fn rsqrt(x: Pattern) -> Pattern {
    unary(|kind| matches!(kind, Kind::Unary(Unary::Rsqrt { .. })), x)
}

pub(crate) fn reduce_max(x: Pattern) -> Pattern {
    unary(|kind| matches!(kind, Kind::Reduce { op: Reduction::Max, .. }), x)
}

pub(crate) fn reduce_mean(x: Pattern) -> Pattern {
    unary(|kind| matches!(kind, Kind::Reduce { op: Reduction::Mean, .. }), x)
}

pub(crate) fn softmax(x: Pattern) -> Pattern {
    unary(|kind| matches!(kind, Kind::Softmax { .. }), x)
}

pub(crate) fn slice(x: Pattern) -> Pattern {
    unary(|kind| matches!(kind, Kind::Slice { .. }), x)
}

pub(crate) fn concat(x: Pattern, y: Pattern) -> Pattern {
    in_order(|kind| matches!(kind, Kind::Concat { .. }), x, y)
}

pub(crate) fn maximum(x: Pattern, y: Pattern) -> Pattern {
    binary(|kind| *kind == Kind::Binary(Binary::Max), x, y)
}

impl Add for Pattern {
    type Output = Pattern;
    fn add(self, other: Pattern) -> Pattern {
        binary(|kind| *kind == Kind::Binary(Binary::Add), self, other)
    }
}

impl Mul for Pattern {
    type Output = Pattern;
    fn mul(self, other: Pattern) -> Pattern {
        binary(|kind| *kind == Kind::Binary(Binary::Mul), self, other)
    }
}

impl Div for Pattern {
    type Output = Pattern;
    fn div(self, other: Pattern) -> Pattern {
        in_order(|kind| *kind == Kind::Binary(Binary::Div), self, other)
    }
}

impl Sub for Pattern {
    type Output = Pattern;
    fn sub(self, other: Pattern) -> Pattern {
        in_order(|kind| *kind == Kind::Binary(Binary::Sub), self, other)
    }
}
