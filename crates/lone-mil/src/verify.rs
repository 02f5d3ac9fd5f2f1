//! Whether a program holds together: names, order of definitions, arguments, and types inferred anew.
//!
//! What the builder makes passes by construction. This is for what comes from elsewhere: packages, text, and
//! passes, after each of which debug builds verify.

use std::collections::HashSet;
use std::fmt::Display;

use crate::identifier::is_identifier;
use crate::ops::{self, Binding, Call, OpError, Opset};
use crate::program::{Arg, Def, Function, Op, Program, ValueId};
use crate::{DType, ValueType};

/// What is wrong with a program, and where: in which function, and in which of its operations.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// A name, a definition, an argument or a result that is not what it must be.
    #[error("{place}: {what}: expected {expected}, found {found}")]
    Fault {
        /// Function, and operation where it is one's.
        place: String,
        /// Name, value, input, output, parameter or result.
        what: String,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// An operation whose arguments do not fit its signature.
    #[error("{place}: {source}")]
    Signature {
        /// Function and operation.
        place: String,
        /// What does not fit.
        source: OpError,
    },
}

impl VerifyError {
    fn new(place: impl Display, what: impl Display, expected: impl Display, found: impl Display) -> Self {
        VerifyError::Fault {
            place: place.to_string(),
            what: what.to_string(),
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }
}

/// Checks every function of `program`, and that the default one is there.
///
/// # Errors
/// [`VerifyError`] naming the first thing that is wrong.
pub fn verify(program: &Program) -> Result<(), VerifyError> {
    let mut names = HashSet::new();
    for function in &program.functions {
        if !names.insert(function.name.as_str()) {
            let found = format!("`{}` twice", function.name);
            return Err(VerifyError::new("program", "functions", "names of their own", found));
        }
        verify_function(function)?;
    }
    if !names.contains(program.default_function.as_str()) {
        let found = format!("`{}`", program.default_function);
        return Err(VerifyError::new("program", "default function", "one of the functions", found));
    }
    Ok(())
}

/// Checks one function.
///
/// # Errors
/// [`VerifyError`] naming the first thing that is wrong.
pub fn verify_function(function: &Function) -> Result<(), VerifyError> {
    let verifier = Verifier { function };
    let opset = verifier.check_opset()?;
    verifier.check_values()?;
    verifier.check_inputs()?;
    for (index, op) in function.ops.iter().enumerate() {
        verifier.check_op(opset, index, op)?;
    }
    verifier.check_outputs()
}

struct Verifier<'a> {
    function: &'a Function,
}

impl Verifier<'_> {
    fn check_opset(&self) -> Result<Opset, VerifyError> {
        let Function { name, opset, .. } = self.function;
        if !is_identifier(name) {
            return Err(self.wrong("name", "an identifier", format!("`{name}`")));
        }
        Opset::from_name(opset).ok_or_else(|| self.wrong("opset", "CoreML5 to CoreML9", format!("`{opset}`")))
    }

    /// Names, shapes, and that each value is what its definition defines.
    fn check_values(&self) -> Result<(), VerifyError> {
        let mut names = HashSet::new();
        for (i, value) in self.function.values.iter().enumerate() {
            let id = ValueId(i as u32);
            let what = || format!("value `{}`", value.name);
            if !is_identifier(&value.name) {
                return Err(self.wrong(what(), "an identifier", "none"));
            }
            if !names.insert(value.name.as_str()) {
                return Err(self.wrong(what(), "a name of its own", "another of that name"));
            }
            let defined = match value.def {
                Def::Input(position) => self.function.inputs.get(position),
                Def::Op { op, output } => self.function.ops.get(op).and_then(|op| op.outputs.get(output)),
            };
            if defined != Some(&id) {
                return Err(self.wrong(what(), "a definition", "one of another value"));
            }
        }
        Ok(())
    }

    fn check_inputs(&self) -> Result<(), VerifyError> {
        for (position, &id) in self.function.inputs.iter().enumerate() {
            let Some(value) = self.function.values.get(id.index()) else {
                return Err(self.wrong(format!("input {position}"), "a value", format!("number {}", id.0)));
            };
            let what = || format!("input `{}`", value.name);
            if value.def != Def::Input(position) {
                return Err(self.wrong(what(), "an input", "a value that an operation defines"));
            }
            if !ops::is_sized(&value.ty.tensor().shape) {
                return Err(self.wrong(what(), "dimensions of at least 1", &value.ty));
            }
            if let ValueType::State(ty) = &value.ty
                && ty.dtype != DType::F16
            {
                return Err(self.wrong(what(), "a state of fp16", &value.ty));
            }
        }
        Ok(())
    }

    fn check_op(&self, opset: Opset, index: usize, op: &Op) -> Result<(), VerifyError> {
        let signature = |source| VerifyError::Signature { place: self.place(index), source };
        let row = ops::find(op.spec.name, opset).map_err(signature)?;
        if row.since != op.spec.since || op.args.len() != row.params.len() {
            return Err(self.wrong_op(index, "arguments", "those of the opset's signature", "others"));
        }
        for (param, arg) in row.params.iter().zip(&op.args) {
            if let Some(arg) = arg {
                self.check_arg(index, param.name, arg)?;
            }
        }
        let inferred =
            Call::new(row, self.function, &op.args).and_then(|call| call.infer()).map_err(signature)?;
        if inferred.len() != op.outputs.len() {
            return Err(self.wrong_op(index, "results", inferred.len(), op.outputs.len()));
        }
        for (output, (ty, &id)) in inferred.into_iter().zip(&op.outputs).enumerate() {
            let Some(value) = self.function.values.get(id.index()) else {
                return Err(self.wrong_op(index, "result", "a value", format!("number {}", id.0)));
            };
            let what = || format!("result `{}`", value.name);
            if value.def != (Def::Op { op: index, output }) {
                return Err(self.wrong_op(index, what(), "its own definition", "another"));
            }
            let ty = ValueType::Tensor(ty);
            if value.ty != ty {
                return Err(self.wrong_op(index, what(), ty, &value.ty));
            }
        }
        Ok(())
    }

    /// That values exist and are defined before, and that literals stand where the format can hold them.
    fn check_arg(&self, index: usize, param: &str, arg: &Arg) -> Result<(), VerifyError> {
        let ids = match arg {
            Arg::Value(id) => std::slice::from_ref(id),
            Arg::Values(ids) => ids,
            Arg::Literal(_) => &[],
        };
        let what = || format!("parameter `{param}`");
        for id in ids {
            let Some(value) = self.function.values.get(id.index()) else {
                return Err(self.wrong_op(index, what(), "a value", format!("number {}", id.0)));
            };
            match value.def {
                Def::Op { op, .. } if op >= index => {
                    let found = format!("`{}`, defined by operation {op}", value.name);
                    return Err(self.wrong_op(index, what(), "a value defined before", found));
                }
                _ => {}
            }
        }
        if self.function.ops[index].spec.binding == Binding::Attributes && !ids.is_empty() {
            return Err(self.wrong_op(index, what(), "a literal", "a reference to a value"));
        }
        Ok(())
    }

    fn check_outputs(&self) -> Result<(), VerifyError> {
        if self.function.outputs.is_empty() {
            return Err(self.wrong("outputs", "one or more", "none"));
        }
        for (i, &id) in self.function.outputs.iter().enumerate() {
            let Some(value) = self.function.values.get(id.index()) else {
                return Err(self.wrong(format!("output {i}"), "a value", format!("number {}", id.0)));
            };
            let what = || format!("output `{}`", value.name);
            if matches!(value.ty, ValueType::State(_)) {
                return Err(self.wrong(what(), "a tensor", &value.ty));
            }
            if self.function.outputs[..i].contains(&id) {
                return Err(self.wrong(what(), "one such output", "two"));
            }
        }
        Ok(())
    }

    fn wrong(&self, what: impl Display, expected: impl Display, found: impl Display) -> VerifyError {
        VerifyError::new(format!("function `{}`", self.function.name), what, expected, found)
    }

    fn wrong_op(
        &self,
        index: usize,
        what: impl Display,
        expected: impl Display,
        found: impl Display,
    ) -> VerifyError {
        VerifyError::new(self.place(index), what, expected, found)
    }

    fn place(&self, index: usize) -> String {
        let op = &self.function.ops[index];
        format!("function `{}`, operation {index}, {} `{}`", self.function.name, op.spec.name, op.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FunctionBuilder, TensorType};

    /// `s = softmax(x + 1/2)`, ops: 0.5, add, axis, softmax.
    fn sample() -> Function {
        let mut b = FunctionBuilder::new("f");
        let x = b.input("x", TensorType::f16([2, 3])).unwrap();
        let half = b.scalar_f16(0.5).unwrap();
        let sum = b.add(x, half).unwrap();
        let s = b.softmax(sum, -1).unwrap();
        b.name(s, "s").unwrap();
        b.output(s).unwrap();
        b.finish().unwrap()
    }

    fn refusal(edit: impl Fn(&mut Function)) -> String {
        let mut function = sample();
        edit(&mut function);
        verify_function(&function).unwrap_err().to_string()
    }

    #[test]
    fn what_the_builder_makes_verifies() {
        let program = Program { functions: vec![sample()], default_function: "f".into() };
        assert_eq!(verify(&program), Ok(()));
    }

    #[test]
    fn programs_need_distinct_functions_and_their_default() {
        let twice = Program { functions: vec![sample(), sample()], default_function: "f".into() };
        assert_eq!(
            verify(&twice).unwrap_err().to_string(),
            "program: functions: expected names of their own, found `f` twice"
        );
        let lost = Program { functions: vec![sample()], default_function: "g".into() };
        let message = verify(&lost).unwrap_err().to_string();
        assert_eq!(message, "program: default function: expected one of the functions, found `g`");
    }

    #[test]
    fn each_kind_of_damage_is_named() {
        type Edit = fn(&mut Function);
        let damages: [(Edit, &str); 13] = [
            (|f| f.name = "3".into(), "function `3`: name: expected an identifier, found `3`"),
            (|f| f.opset = "CoreML4".into(), "opset: expected CoreML5 to CoreML9, found `CoreML4`"),
            (|f| f.values[0].name = "fp16".into(), "value `fp16`: expected an identifier"),
            (|f| f.values[0].name = "s".into(), "value `s`: expected a name of its own"),
            (
                |f| f.values[0].ty = TensorType::f16([0]).into(),
                "input `x`: expected dimensions of at least 1",
            ),
            (|f| f.inputs.clear(), "value `x`: expected a definition"),
            (|f| f.inputs.push(ValueId(9)), "input 1: expected a value, found number 9"),
            (|f| f.ops.swap(0, 1), "value `v0`: expected a definition, found one of another value"),
            (
                |f| f.ops[1].args[1] = Some(Arg::Value(ValueId(4))),
                "operation 1, add `v1`: parameter `y`: expected a value defined before, found `s`, defined by operation 3",
            ),
            (
                |f| f.ops[1].args[1] = Some(Arg::Value(ValueId(7))),
                "parameter `y`: expected a value, found number 7",
            ),
            (
                |f| f.ops[3].args[1] = Some(Arg::Value(ValueId(0))),
                "softmax: parameter `axis`: expected int32 scalar",
            ),
            (
                |f| f.values[4].ty = TensorType::f16([3, 2]).into(),
                "softmax `s`: result `s`: expected fp16(2,3), found fp16(3,2)",
            ),
            (|f| f.outputs.push(f.outputs[0]), "output `s`: expected one such output, found two"),
        ];
        for (edit, expected) in damages {
            let message = refusal(edit);
            assert!(message.contains(expected), "{message}\ndoes not say\n{expected}");
        }
    }
}
