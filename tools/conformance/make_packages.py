#!/usr/bin/env python3
"""Make packages with coremltools, one of each kind that a reader must know.

usage: make_packages.py OUT_DIR [KIND ...]

OUT_DIR gets a KIND.mlpackage for each kind: opsets from iOS 15 to iOS 26, palettes and quantized weights in both
encodings, a state, several functions over one weight.bin, values in place, parameters left out. The kinds
"branching" and "flexible" are made only if named: they are sound, but no static programs.
"""
import argparse
import logging
import os
import shutil
import warnings

import numpy as np

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
os.environ["TQDM_DISABLE"] = "1"

import coremltools as ct  # noqa: E402
import coremltools.optimize.coreml as cto  # noqa: E402
from coremltools.converters.mil.mil import Builder as mb, types  # noqa: E402

iOS = {15: ct.target.iOS15, 16: ct.target.iOS16, 17: ct.target.iOS17, 18: ct.target.iOS18, 26: ct.target.iOS26}
FLOATS = {types.fp16: np.float16, types.fp32: np.float32}


def random(shape, seed, dtype=np.float16):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def convert(prog, target, **kwargs):
    return ct.convert(prog, convert_to="mlprogram", minimum_deployment_target=target,
                      compute_precision=ct.precision.FLOAT32, skip_model_load=True, **kwargs)


def block(target, tokens=1, dtype=types.fp16):
    """conv -> silu -> conv -> linear, over `tokens` tokens: the weights do not depend on their number."""
    w = FLOATS[dtype]

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 32, 1, tokens), dtype=dtype)], opset_version=target)
    def prog(x):
        up = mb.conv(x=x, weight=random((64, 32, 1, 1), 1, w), bias=random((64,), 2, w), name="up")
        gate, value = mb.split(x=up, num_splits=2, axis=1, name="parts")
        y = mb.mul(x=mb.silu(x=gate), y=value)
        y = mb.conv(x=y, weight=random((32, 32, 1, 1), 3, w), name="down")
        y = mb.squeeze(x=mb.transpose(x=y, perm=[0, 3, 2, 1]), axes=[2])
        return mb.linear(x=y, weight=random((16, 32), 4, w), name="y")
    return convert(prog, target)


def tour(target=iOS[18]):
    """Most of the other operations that language models need."""
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 4, 8, 16), dtype=types.fp16),
                             mb.TensorSpec(shape=(1, 2), dtype=types.int32)], opset_version=target)
    def prog(x, ids):
        norm = mb.rsqrt(x=mb.reduce_mean(x=mb.square(x=x), axes=[-1], keep_dims=True), epsilon=np.float16(1e-5))
        h = mb.mul(x=x, y=norm)
        q = mb.slice_by_index(x=h, begin=[0, 0, 0, 0], end=[0, 0, 4, 0], begin_mask=[True, True, False, True],
                              end_mask=[True, True, False, True])
        scores = mb.matmul(x=q, y=h, transpose_x=False, transpose_y=True)
        probs = mb.softmax(x=mb.add(x=scores, y=random((1, 1, 4, 8), 5)), axis=-1)
        out = mb.concat(values=[mb.matmul(x=probs, y=h), q], axis=2, interleave=False)
        rows = mb.gather(x=random((50, 16), 6), indices=ids, axis=0)
        rows = mb.tile(x=mb.expand_dims(x=rows, axes=[1]), reps=[1, 4, 4, 1])
        out = mb.maximum(x=mb.add(x=out, y=rows), y=np.float16(-4.0))
        normed = mb.layer_norm(x=out, axes=[-1], gamma=random((16,), 7), beta=random((16,), 8),
                               epsilon=np.float16(1e-5))
        flat = mb.reshape(x=mb.tanh(x=mb.exp(x=normed)), shape=[1, -1])
        half = mb.slice_by_size(x=flat, begin=[0, 8], size=[1, 16])
        return mb.cast(x=half, dtype="fp32"), mb.reduce_max(x=out, axes=[-1], keep_dims=False)
    return convert(prog, target)


def stateful():
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 32), dtype=types.fp16),
                             mb.StateTensorSpec(shape=(1, 32), dtype=types.fp16)], opset_version=iOS[18])
    def prog(x, memory):
        total = mb.add(x=mb.read_state(input=memory), y=x)
        return mb.mul(x=mb.coreml_update_state(state=memory, value=total), y=random((1, 32), 9))
    return convert(prog, iOS[18])


def nested():
    """An int8 palette whose entries are scaled before they are looked up."""
    indices = np.random.default_rng(10).integers(0, 16, (8, 32, 1, 1)).astype(np.uint8)
    entries = np.random.default_rng(11).integers(-128, 128, (2, 1, 1, 1, 16, 1)).astype(np.int8)

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 32, 1, 1), dtype=types.fp16)], opset_version=iOS[18])
    def prog(x):
        scale = np.full((2, 1, 1, 1, 1, 1), 0.01, np.float16)
        lut = mb.constexpr_blockwise_shift_scale(data=entries, scale=scale)
        weight = mb.constexpr_lut_to_dense(indices=indices.astype(types.np_uint4_dtype), lut=lut)
        return mb.conv(x=x, weight=weight)
    return convert(prog, iOS[18])


def palettized(model, nbits, **kwargs):
    """`kwargs` choose the granularity; tables are spread evenly between the least and the greatest weight."""
    config = cto.OpPalettizerConfig(mode="uniform", nbits=nbits, weight_threshold=0, **kwargs)
    return cto.palettize_weights(model, cto.OptimizationConfig(global_config=config))


def quantized(model, dtype, **kwargs):
    config = cto.OpLinearQuantizerConfig(mode="linear_symmetric", dtype=dtype, weight_threshold=0, **kwargs)
    return cto.linear_quantize_weights(model, cto.OptimizationConfig(global_config=config))


def multifunction(out, models):
    """One package out of saved ones, by function name; the first is the default."""
    desc = ct.utils.MultiFunctionDescriptor()
    for name, path in models.items():
        desc.add_function(path, src_function_name="main", target_function_name=name)
    desc.default_function_name = next(iter(models))
    ct.utils.save_multifunction(desc, out)


def edited(source, out, edit):
    """A copy of the package `source` whose message `edit` changes."""
    shutil.copytree(source, out)
    path = os.path.join(out, "Data", "com.apple.CoreML", "model.mlmodel")
    spec = ct.proto.Model_pb2.Model()
    with open(path, "rb") as f:
        spec.ParseFromString(f.read())
    edit(spec)
    with open(path, "wb") as f:
        f.write(spec.SerializeToString())


def operations(spec):
    function = spec.mlProgram.functions["main"]
    return function.block_specializations[function.opset].operations


def values_in_place(spec):
    """Every small constant moves into the operations that use it."""
    consts = {op.outputs[0].name: op.attributes["val"] for op in operations(spec)
              if op.type == "const" and op.attributes["val"].WhichOneof("value") == "immediateValue"}
    for op in operations(spec):
        for argument in op.inputs.values():
            for binding in argument.arguments:
                if binding.name in consts and len(argument.arguments) == 1:
                    binding.value.CopyFrom(consts[binding.name])


def defaults_left_out(spec):
    for op in operations(spec):
        for parameter in ("strides", "pad_type", "pad", "dilations", "groups", "interleave", "transpose_x"):
            op.inputs.pop(parameter, None)


def flexible():
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, ct.converters.mil.mil.get_new_symbol()), dtype=types.fp16)],
                opset_version=iOS[18])
    def prog(x):
        return mb.silu(x=x)
    return convert(prog, iOS[18], inputs=[ct.TensorType("x", shape=(1, ct.RangeDim(1, 16)), dtype=np.float16)])


def branching():
    @mb.program(input_specs=[mb.TensorSpec(shape=(1,), dtype=types.fp32)], opset_version=iOS[18])
    def prog(x):
        positive = mb.squeeze(x=mb.greater(x=x, y=np.float32(0)))
        return mb.cond(pred=positive, _true_fn=lambda: mb.exp(x=x), _false_fn=lambda: mb.identity(x=x))
    return convert(prog, iOS[18])


GROUPED = {"granularity": "per_grouped_channel", "group_size": 8}
STATIC = {
    "fp32_ios15": lambda: block(iOS[15], dtype=types.fp32),
    "fp16_ios16": lambda: block(iOS[16]),
    "fp16_ios17": lambda: block(iOS[17]),
    "fp16_ios18": lambda: block(iOS[18]),
    "fp16_ios26": lambda: block(iOS[26]),
    "four_tokens": lambda: block(iOS[18], tokens=4),
    "tour_ios17": lambda: tour(iOS[17]),
    "tour_ios18": lambda: tour(iOS[18]),
    "stateful": stateful,
    "lut4_ios16": lambda: palettized(block(iOS[16]), 4),
    "lut6_ios17": lambda: palettized(block(iOS[17]), 6),
    "lut3_grouped": lambda: palettized(block(iOS[18]), 3, **GROUPED),
    "lut4_grouped": lambda: palettized(block(iOS[18]), 4, **GROUPED),
    "lut6_tensor": lambda: palettized(block(iOS[18]), 6),
    "lut_nested": nested,
    "int8_ios16": lambda: quantized(block(iOS[16]), np.int8),
    "int4_blocks": lambda: quantized(block(iOS[18]), types.int4, granularity="per_block", block_size=16),
}
# What is made of packages rather than of programs.
DERIVED = {
    "multifunction": lambda at: multifunction(
        at("multifunction"), {"decode": at("fp16_ios18"), "prefill": at("four_tokens")}),
    "in_place": lambda at: edited(at("fp16_ios18"), at("in_place"), values_in_place),
    "left_out": lambda at: edited(at("fp16_ios18"), at("left_out"), defaults_left_out),
}
NOT_STATIC = {"branching": branching, "flexible": flexible}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("kinds", nargs="*", metavar="kind", choices=[[], *STATIC, *NOT_STATIC])
    args = parser.parse_args()
    at = lambda kind: os.path.join(args.out, kind + ".mlpackage")
    for kind in args.kinds or STATIC:
        {**STATIC, **NOT_STATIC}[kind]().save(at(kind))
    if not args.kinds:
        for derive in DERIVED.values():
            derive(at)


if __name__ == "__main__":
    main()
