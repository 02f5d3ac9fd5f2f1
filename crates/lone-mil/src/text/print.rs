//! From programs to text.

use std::fmt::{self, Write};

use crate::literal::encode_hex;
use crate::program::{Arg, Function, Literal, Op, Payload, Program, ValueId};

/// The text of a program: its default function first, the others in their order.
pub fn print(program: &Program) -> String {
    let is_default = |function: &&Function| function.name == program.default_function;
    let default = program.functions.iter().filter(is_default);
    let others = program.functions.iter().filter(|function| !is_default(function));
    default.chain(others).map(print_function).collect::<Vec<_>>().join("\n")
}

/// The text of a function.
pub fn print_function(function: &Function) -> String {
    let mut out = String::new();
    Printer { function, out: &mut out }.function().expect("strings take all that is written");
    out
}

struct Printer<'a> {
    function: &'a Function,
    out: &'a mut String,
}

impl Printer<'_> {
    fn function(&mut self) -> fmt::Result {
        let Function { name, opset, inputs, outputs, ops, .. } = self.function;
        write!(self.out, "func {name}<{opset}>(")?;
        self.separated(inputs, Self::typed)?;
        self.out.write_str(") -> (")?;
        self.separated(outputs, Self::name)?;
        self.out.write_str(") {\n")?;
        ops.iter().try_for_each(|op| self.op(op))?;
        self.out.write_str("}\n")
    }

    fn op(&mut self, op: &Op) -> fmt::Result {
        self.out.write_str("    ")?;
        self.separated(&op.outputs, Self::typed)?;
        if !op.outputs.is_empty() {
            self.out.write_str(" = ")?;
        }
        write!(self.out, "{}(", op.spec.name)?;
        let given =
            op.spec.params.iter().zip(&op.args).filter_map(|(param, arg)| Some((param.name, arg.as_ref()?)));
        self.separated(&given.collect::<Vec<_>>(), |printer, &(param, arg)| {
            write!(printer.out, "{param} = ")?;
            printer.arg(arg)
        })?;
        self.out.write_str(")")?;
        if !matches!(op.outputs[..], [only] if self.function.value(only).name == op.name) {
            self.out.write_str(" [name = ")?;
            self.quoted(&op.name)?;
            self.out.write_str("]")?;
        }
        self.out.write_str("\n")
    }

    fn arg(&mut self, arg: &Arg) -> fmt::Result {
        match arg {
            Arg::Value(id) => self.name(id),
            Arg::Values(ids) => {
                self.out.write_str("(")?;
                self.separated(ids, Self::name)?;
                self.out.write_str(")")
            }
            Arg::Literal(literal) => self.literal(literal),
        }
    }

    fn literal(&mut self, literal: &Literal) -> fmt::Result {
        write!(self.out, "{} ", literal.ty)?;
        let bytes = match &literal.payload {
            Payload::Blob(offset) => return write!(self.out, "blob {offset}"),
            Payload::Strings(strings) => {
                return self.elements(literal, strings, |printer, string| printer.quoted(string));
            }
            Payload::Bytes(bytes) => bytes,
        };
        if let Some(ints) = literal.to_ints() {
            return self.elements(literal, &ints, |printer, int| write!(printer.out, "{int}"));
        }
        match literal.to_floats().filter(|floats| floats.iter().all(|float| float.is_finite())) {
            Some(floats) => self.elements(literal, &floats, |printer, float| write!(printer.out, "{float}")),
            None => write!(self.out, "bits {}", encode_hex(bytes)),
        }
    }

    /// One element by itself for a scalar, all of them in brackets for anything else.
    fn elements<T>(
        &mut self,
        literal: &Literal,
        elements: &[T],
        print: impl Fn(&mut Self, &T) -> fmt::Result,
    ) -> fmt::Result {
        if let ([only], true) = (elements, literal.ty.shape.is_empty()) {
            return print(self, only);
        }
        self.out.write_str("[")?;
        self.separated(elements, print)?;
        self.out.write_str("]")
    }

    fn separated<T>(&mut self, items: &[T], print: impl Fn(&mut Self, &T) -> fmt::Result) -> fmt::Result {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.out.write_str(", ")?;
            }
            print(self, item)?;
        }
        Ok(())
    }

    fn name(&mut self, id: &ValueId) -> fmt::Result {
        self.out.write_str(&self.function.value(*id).name)
    }

    fn typed(&mut self, id: &ValueId) -> fmt::Result {
        let value = self.function.value(*id);
        write!(self.out, "{}: {}", value.name, value.ty)
    }

    fn quoted(&mut self, string: &str) -> fmt::Result {
        self.out.write_str("\"")?;
        for c in string.chars() {
            match c {
                '"' => self.out.write_str("\\\"")?,
                '\\' => self.out.write_str("\\\\")?,
                '\n' => self.out.write_str("\\n")?,
                c => self.out.write_char(c)?,
            }
        }
        self.out.write_str("\"")
    }
}
