//! One function in the making: its operations, and for each port what it carries.

use lone_bundle::{Binding, GraphFunction, LayerOutput, Port, Role};
use lone_mil::{BuildError, Function, FunctionBuilder, TensorType, ValueId};

use crate::ConvertOptions;

/// A shape that graphs are built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) role: Role,
    /// S.
    pub(crate) tokens: usize,
}

impl Pass {
    /// The shapes of every chunk.
    pub(crate) fn of_chunks(options: &ConvertOptions) -> Vec<Pass> {
        let decode = (!options.prefill_only).then_some(Pass { role: Role::Decode, tokens: 1 });
        let prefill = (!options.decode_only).then_some(Pass { role: Role::Prefill, tokens: options.prefill });
        let verify = options.spec_drafts.map(|drafts| Pass { role: Role::Verify, tokens: drafts + 1 });
        decode.into_iter().chain(prefill).chain(verify).collect()
    }

    /// The shapes of every head: of a prompt, only the last token's logits are wanted.
    pub(crate) fn of_heads(options: &ConvertOptions) -> Vec<Pass> {
        let verify = options.spec_drafts.map(|drafts| Pass { role: Role::Verify, tokens: drafts + 1 });
        [Pass { role: Role::Decode, tokens: 1 }].into_iter().chain(verify).collect()
    }

    /// The name of its function.
    pub(crate) fn name(self) -> &'static str {
        match self.role {
            Role::Decode => "decode",
            Role::Prefill => "prefill",
            Role::Verify => "verify",
        }
    }
}

/// Builder and ports, in step.
pub(crate) struct FunctionGraph {
    pub(crate) builder: FunctionBuilder,
    pass: Pass,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    layer_outputs: Vec<LayerOutput>,
}

/// A function and its description in bundle.json.
#[derive(Debug)]
pub(crate) struct BuiltFunction {
    pub(crate) function: Function,
    pub(crate) description: GraphFunction,
}

impl FunctionGraph {
    pub(crate) fn new(pass: Pass) -> Self {
        FunctionGraph {
            builder: FunctionBuilder::new(pass.name()),
            pass,
            inputs: Vec::new(),
            outputs: Vec::new(),
            layer_outputs: Vec::new(),
        }
    }

    /// S.
    pub(crate) fn tokens(&self) -> usize {
        self.pass.tokens
    }

    /// The next input, an fp16 tensor.
    pub(crate) fn input(
        &mut self,
        name: &str,
        shape: [usize; 4],
        binding: Binding,
    ) -> Result<ValueId, BuildError> {
        let value = self.builder.input(name, TensorType::f16(shape))?;
        self.inputs.push(Port { name: name.into(), shape: shape.into(), binding });
        Ok(value)
    }

    /// Names `value` and makes it the next output.
    pub(crate) fn output(&mut self, value: ValueId, name: &str, binding: Binding) -> Result<(), BuildError> {
        self.builder.name(value, name)?;
        self.builder.output(value)?;
        let shape = self.builder.shape(value).to_vec();
        self.outputs.push(Port { name: name.into(), shape, binding });
        Ok(())
    }

    /// Notes that the value called `value` holds what `layer` puts out.
    pub(crate) fn layer_output(&mut self, layer: usize, value: &str) {
        self.layer_outputs.push(LayerOutput { layer, value: value.into() });
    }

    /// The function, with `ctx` rows in a full-attention cache if it has any.
    pub(crate) fn finish(self, ctx: usize) -> Result<BuiltFunction, BuildError> {
        let description = GraphFunction {
            name: self.pass.name().into(),
            role: self.pass.role,
            tokens: self.pass.tokens,
            ctx,
            inputs: self.inputs,
            outputs: self.outputs,
            layer_outputs: self.layer_outputs,
        };
        Ok(BuiltFunction { function: self.builder.finish()?, description })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(passes: &[Pass]) -> Vec<(&'static str, usize)> {
        passes.iter().map(|pass| (pass.name(), pass.tokens)).collect()
    }

    #[test]
    fn each_shape_asked_for_is_a_function() {
        let all = ConvertOptions { spec_drafts: Some(16), ..Default::default() };
        assert_eq!(names(&Pass::of_chunks(&all)), [("decode", 1), ("prefill", 64), ("verify", 17)]);
        assert_eq!(names(&Pass::of_heads(&all)), [("decode", 1), ("verify", 17)]);
        let prefill = ConvertOptions { prefill_only: true, ..Default::default() };
        assert_eq!(names(&Pass::of_chunks(&prefill)), [("prefill", 64)]);
        assert_eq!(names(&Pass::of_heads(&prefill)), [("decode", 1)]);
        let decode = ConvertOptions { decode_only: true, ..Default::default() };
        assert_eq!(names(&Pass::of_chunks(&decode)), [("decode", 1)]);
    }
}
