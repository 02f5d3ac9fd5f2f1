#!/usr/bin/env python3
"""Copy a good package many times over, each copy damaged in one place.

usage: damage_package.py PACKAGE OUT_DIR

PACKAGE needs several functions, a blob of fp16 that a const called "kernel" holds, a palettized weight called
"weight_uint4" and a state. OUT_DIR gets one NAME.mlpackage a damage. None of the copies is sound, and a reader
that takes one of them would run something that nobody wrote.
"""
import json
import os
import shutil
import struct
import sys

from coremltools import proto

MODEL = "Data/com.apple.CoreML/model.mlmodel"
WEIGHTS = "Data/com.apple.CoreML/weights/weight.bin"
FP32, INT32 = 11, 23


# ----------------------------------------------------------------------------- of weight.bin
def record(weights, index):
    """The offset of a metadata record."""
    offset = 64
    for _ in range(index):
        size, = struct.unpack_from("<Q", weights, offset + 8)
        offset = -(-(offset + 64 + size) // 64) * 64
    return offset


def put(form, at, change):
    """Changes one number of the file."""
    def damage(weights):
        old, = struct.unpack_from(form, weights, at(weights))
        struct.pack_into(form, weights, at(weights), change(old))
    return damage


WEIGHT_DAMAGES = {
    "version": put("<I", lambda w: 4, lambda _: 1),
    "count_too_small": put("<I", lambda w: 0, lambda n: n - 1),
    "count_too_great": put("<I", lambda w: 0, lambda n: n + 1),
    "sentinel": put("<I", lambda w: record(w, 0), lambda _: 0),
    "sentinel_of_the_last": put("<I", lambda w: record(w, struct.unpack_from("<I", w)[0] - 1), lambda s: s ^ 1),
    "dtype": put("<I", lambda w: record(w, 0) + 4, lambda _: 6),
    "unknown_dtype": put("<I", lambda w: record(w, 0) + 4, lambda _: 99),
    "size": put("<Q", lambda w: record(w, 0) + 8, lambda n: n - 2),
    "size_past_the_end": put("<Q", lambda w: record(w, 0) + 8, lambda n: n + (1 << 40)),
    "data_offset_unaligned": put("<Q", lambda w: record(w, 0) + 16, lambda n: n + 2),
    "data_offset_past_the_end": put("<Q", lambda w: record(w, 0) + 16, lambda n: n + (1 << 40)),
    "padding": put("<Q", lambda w: record(w, 0) + 24, lambda _: 9),
    "truncated": lambda w: w.__delitem__(slice(-1, None)),
    "a_blob_more": lambda w: w.extend(bytes(200)),
}


# ----------------------------------------------------------------------------- of the model
def block(spec, function="every_op"):
    f = spec.mlProgram.functions[function]
    return f.block_specializations[f.opset]


def op(spec, kind, function="every_op"):
    return next(o for o in block(spec, function).operations if o.type == kind)


def made_by(spec, name, function="every_op"):
    return next(o for o in block(spec, function).operations if o.outputs and o.outputs[0].name == name)


def described(spec, function="every_op"):
    return next(f for f in spec.description.functions if f.name == function)


def kernel(spec):
    return made_by(spec, "kernel").attributes["val"]


def palette(spec, parameter):
    return made_by(spec, "weight_uint4", "every_palette").inputs[parameter].arguments[0].value


def shape_of(value):
    return value.type.tensorType.dimensions


def swap(repeated, a, b):
    items = list(repeated)
    items[a], items[b] = items[b], items[a]
    del repeated[:]
    repeated.extend(items)


MODEL_DAMAGES = {
    "blob_offset_of_its_data": lambda s: setattr(kernel(s).blobFileValue, "offset", kernel(s).blobFileValue.offset + 64),
    "blob_offset_past_the_end": lambda s: setattr(kernel(s).blobFileValue, "offset", 1 << 40),
    "blob_of_another_type": lambda s: setattr(
        kernel(s).blobFileValue, "offset", palette(s, "indices").blobFileValue.offset),
    "blob_file_name": lambda s: setattr(kernel(s).blobFileValue, "fileName", "@model_path/weights/other.bin"),
    "constant_dtype": lambda s: setattr(kernel(s).type.tensorType, "dataType", FP32),
    "constant_shape": lambda s: setattr(shape_of(kernel(s))[0].constant, "size", 9),
    "constant_rank": lambda s: setattr(kernel(s).type.tensorType, "rank", 3),
    "constant_without_value": lambda s: kernel(s).ClearField("blobFileValue"),
    "result_shape": lambda s: setattr(shape_of(op(s, "conv").outputs[0])[1].constant, "size", 7),
    "result_dtype": lambda s: setattr(op(s, "silu").outputs[0].type.tensorType, "dataType", FP32),
    "palette_groups": lambda s: setattr(shape_of(palette(s, "lut"))[0].constant, "size", 9),
    "palette_rank": lambda s: (shape_of(palette(s, "lut")).pop(),
                               setattr(palette(s, "lut").type.tensorType, "rank", 5)),
    "undefined_name": lambda s: setattr(op(s, "conv").inputs["x"].arguments[0], "name", "nope"),
    "name_defined_later": lambda s: setattr(
        op(s, "abs").inputs["x"].arguments[0], "name", op(s, "exp").outputs[0].name),
    "name_taken": lambda s: setattr(op(s, "silu").outputs[0], "name", "x"),
    "name_no_identifier": lambda s: setattr(op(s, "silu").outputs[0], "name", "9x"),
    "operation_unknown": lambda s: setattr(op(s, "silu"), "type", "silu2"),
    "operation_unnamed": lambda s: op(s, "silu").attributes.pop("name"),
    "operation_with_an_attribute": lambda s: op(s, "silu").attributes["extra"].CopyFrom(
        op(s, "silu").attributes["name"]),
    "input_missing": lambda s: op(s, "conv").inputs.pop("weight"),
    "input_unbound": lambda s: op(s, "conv").inputs["x"].ClearField("arguments"),
    "inline_blob": lambda s: op(s, "conv").inputs["weight"].arguments[0].value.CopyFrom(kernel(s)),
    "halves_as_floats": lambda s: made_by(s, op(s, "clip").inputs["alpha"].arguments[0].name)
        .attributes["val"].immediateValue.tensor.floats.values.append(1.0),
    "output_undefined": lambda s: block(s).outputs.__setitem__(0, "nope"),
    "function_input_shape": lambda s: setattr(
        shape_of(s.mlProgram.functions["every_op"].inputs[0])[3].constant, "size", 9),
    "opset_without_body": lambda s: setattr(s.mlProgram.functions["every_op"], "opset", "CoreML7"),
    "program_version": lambda s: setattr(s.mlProgram, "version", 2),
    "specification_version": lambda s: setattr(s, "specificationVersion", 8),
    "function_undescribed": lambda s: s.description.functions.pop(0),
    "function_described_only": lambda s: s.mlProgram.functions.pop("remember"),
    "default_function": lambda s: setattr(s.description, "defaultFunctionName", "main"),
    "features_of_the_model": lambda s: s.description.input.extend(described(s).input),
    "feature_dtype": lambda s: setattr(described(s).input[0].type.multiArrayType, "dataType", 65568),
    "feature_shape": lambda s: described(s).input[0].type.multiArrayType.shape.__setitem__(3, 9),
    "feature_name": lambda s: setattr(described(s).input[0], "name", "z"),
    "feature_missing": lambda s: described(s).input.pop(),
    "features_swapped": lambda s: swap(described(s).output, 0, 1),
    "state_missing": lambda s: described(s, "remember").state.pop(),
}


# ----------------------------------------------------------------------------- of the manifest
def item(manifest, name):
    return next(i for i in manifest["itemInfoEntries"].values() if i["name"] == name)


MANIFEST_DAMAGES = {
    "manifest_version": lambda m: m.update(fileFormatVersion="2.0.0"),
    "manifest_root": lambda m: m.update(rootModelIdentifier="nobody"),
    "manifest_without_items": lambda m: m.pop("itemInfoEntries"),
    "manifest_item_without_author": lambda m: item(m, "weights").pop("author"),
    "manifest_item_lost": lambda m: item(m, "weights").update(path="com.apple.CoreML/lost"),
    "manifest_without_weights": lambda m: item(m, "weights").update(name="heights"),
}


def edit(path, damage, read, write):
    with open(path, "rb") as f:
        content = read(f.read())
    before = write(content)
    damage(content)
    after = write(content)
    assert before != after, "nothing was damaged"
    with open(path, "wb") as f:
        f.write(after)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, out = sys.argv[1:]
    model = (lambda b: proto.Model_pb2.Model.FromString(b), lambda s: s.SerializeToString(deterministic=True))
    kinds = [
        (WEIGHTS, WEIGHT_DAMAGES, (bytearray, bytes)),
        (MODEL, MODEL_DAMAGES, model),
        ("Manifest.json", MANIFEST_DAMAGES, (json.loads, lambda m: json.dumps(m).encode())),
    ]
    for file, damages, (read, write) in kinds:
        for name, damage in damages.items():
            package = os.path.join(out, name + ".mlpackage")
            shutil.copytree(source, package)
            edit(os.path.join(package, file), damage, read, write)


if __name__ == "__main__":
    main()
