//! One function in the making: its operations, and for each port what it carries.

use lone_bundle::{Binding, GraphFunction, LayerOutput, Port, Role};
use lone_mil::{BuildError, Function, FunctionBuilder, TensorType, ValueId};

use crate::ConvertOptions;

/// A shape that graphs are built for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pass {
    /// What its function is called.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// S.
    pub(crate) tokens: usize,
    /// Rows of a full-attention cache; 0 for heads, which have none.
    pub(crate) ctx: usize,
}

impl Pass {
    /// The shapes of every chunk: by context, then by tokens of the roles in turn.
    pub(crate) fn of_chunks(options: &ConvertOptions) -> Vec<Pass> {
        let at = |ctx| {
            let mut passes = Vec::new();
            if !options.prefill_only {
                passes.push(Pass::new(Role::Decode, 1, ctx));
            }
            if !options.decode_only {
                let several = options.prefill.len() > 1;
                passes.extend(options.prefill.iter().map(|&tokens| {
                    let pass = Pass::new(Role::Prefill, tokens, ctx);
                    if several { pass.with_suffix(&tokens.to_string()) } else { pass }
                }));
            }
            passes.extend(options.spec_drafts.map(|drafts| Pass::new(Role::Verify, drafts + 1, ctx)));
            passes
        };
        match options.ctx[..] {
            [ctx] => at(ctx),
            _ => {
                let named = |ctx| at(ctx).into_iter().map(move |pass| pass.with_suffix(&format!("ctx{ctx}")));
                options.ctx.iter().flat_map(|&ctx| named(ctx)).collect()
            }
        }
    }

    /// The shapes of every head: of a prompt, only the last token's logits are wanted.
    pub(crate) fn of_heads(options: &ConvertOptions) -> Vec<Pass> {
        let verify = options.spec_drafts.map(|drafts| Pass::new(Role::Verify, drafts + 1, 0));
        [Pass::new(Role::Decode, 1, 0)].into_iter().chain(verify).collect()
    }

    fn new(role: Role, tokens: usize, ctx: usize) -> Pass {
        let name = match role {
            Role::Decode => "decode",
            Role::Prefill => "prefill",
            Role::Verify => "verify",
        };
        Pass { name: name.into(), role, tokens, ctx }
    }

    fn with_suffix(self, suffix: &str) -> Pass {
        Pass { name: format!("{}_{suffix}", self.name), ..self }
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
            builder: FunctionBuilder::new(&pass.name),
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

    /// Rows of a full-attention cache.
    pub(crate) fn ctx(&self) -> usize {
        self.pass.ctx
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

    /// The function.
    pub(crate) fn finish(self) -> Result<BuiltFunction, BuildError> {
        let description = GraphFunction {
            name: self.pass.name,
            role: self.pass.role,
            tokens: self.pass.tokens,
            ctx: self.pass.ctx,
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

    fn names(passes: &[Pass]) -> Vec<(&str, usize)> {
        passes.iter().map(|pass| (&pass.name[..], pass.tokens)).collect()
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

    #[test]
    fn several_contexts_and_prefills_have_names_of_their_own() {
        let options = ConvertOptions { ctx: vec![64, 512], prefill: vec![16, 32], ..Default::default() };
        let expected =
            [("decode_ctx64", 1), ("prefill_16_ctx64", 16), ("prefill_32_ctx64", 32), ("decode_ctx512", 1)];
        let passes = Pass::of_chunks(&options);
        assert_eq!(names(&passes)[..4], expected);
        assert_eq!(passes.iter().map(|pass| pass.ctx).collect::<Vec<_>>(), [64, 64, 64, 512, 512, 512]);
    }
}
