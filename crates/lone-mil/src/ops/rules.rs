//! For tests of type rules: what an operation makes of arguments, as one line of text.

use crate::{FunctionBuilder, Given, TensorType};

/// The types of the results of `op`, or what is wrong, for tensors given by their type and constants by value.
pub(super) fn infer(op: &str, tensors: &[(&str, TensorType)], constants: &[(&str, Given)]) -> String {
    let mut b = FunctionBuilder::new("f");
    let mut args: Vec<(&str, Given)> = constants.to_vec();
    for (i, (param, ty)) in tensors.iter().enumerate() {
        let value = b.input(&format!("x{i}"), ty.clone()).unwrap();
        match args.iter_mut().find(|(name, _)| name == param) {
            Some((_, Given::Values(values))) => values.push(value),
            _ if *param == "values" => args.push((param, Given::Values(vec![value]))),
            _ => args.push((param, value.into())),
        }
    }
    match b.op(op, &args) {
        Ok(outputs) => outputs.iter().map(|&id| b.ty(id).to_string()).collect::<Vec<_>>().join(" "),
        Err(error) => {
            let message = error.to_string();
            let (_, after) = message.split_once(&format!("{op}: ")).unwrap_or(("", &message));
            after.to_owned()
        }
    }
}

/// An fp16 type.
pub(super) fn f16(dims: &[usize]) -> TensorType {
    TensorType::f16(dims.to_vec())
}

/// An int32 vector.
pub(super) fn ints(values: &[i32]) -> Given {
    values.into()
}
