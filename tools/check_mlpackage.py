#!/usr/bin/env python3
"""Check a Core ML ML Program package on Linux, without Core ML.

usage: check_mlpackage.py [--npz OUT.npz] [--weights OUT_DIR] [--quiet] PACKAGE.mlpackage ...

Exit code 0: every check passed.  1: a check failed (one FAIL line a package says where).  2: wrong usage.

What it does, in this order:
  1. manifest fields, item paths, and libmodelpackage's own validation;
  2. weight.bin walked from the header: version, count, sentinels, alignment, bounds;
  3. the protobuf, read raw: names defined before use, unique, valid identifiers; ranks equal the
     number of dimensions; every blob reference against its metadata record (dtype, bytes, padding);
     every immediate value has as many elements as its type says;
  4. model description against the functions' inputs, states and outputs;
  5. each function on its own through coremltools' MIL loader, so that type inference runs on each
     op, and the inferred output types compared with the declared ones (constants included);
  6. every constexpr_* op expanded to numpy, by coremltools and, for the common ones, a second time
     from the raw bytes by the code below, and the two compared.

--weights writes what coremltools read: every constant but strings, every parameter of a constexpr_*
op and what it expands to, as PACKAGE/FUNCTION/VALUE[.PARAMETER].bin (row-major,
little-endian, one or more whole bytes an element), and PACKAGE/index.json, a list of {function,
value, parameter, dtype, shape}. PACKAGE is its name without .mlpackage.
"""
import argparse
import collections
import json
import logging
import math
import os
import re
import struct
import sys
import warnings

import numpy as np


class Bad(Exception):
    pass


# MIL DataType -> (name, bits, numpy type of one unpacked element)
MIL = {
    1: ("BOOL", 8, np.bool_), 10: ("FLOAT16", 16, np.float16), 11: ("FLOAT32", 32, np.float32),
    12: ("FLOAT64", 64, np.float64), 21: ("INT8", 8, np.int8), 22: ("INT16", 16, np.int16),
    23: ("INT32", 32, np.int32), 24: ("INT64", 64, np.int64), 25: ("INT4", 4, np.int8),
    31: ("UINT8", 8, np.uint8), 32: ("UINT16", 16, np.uint16), 33: ("UINT32", 32, np.uint32),
    35: ("UINT4", 4, np.uint8), 36: ("UINT2", 2, np.uint8), 37: ("UINT1", 1, np.uint8),
    38: ("UINT6", 6, np.uint8), 39: ("UINT3", 3, np.uint8), 2: ("STRING", 0, None),
}
# blob file dtype code -> MIL DataType
BLOB2MIL = {1: 10, 2: 11, 3: 31, 4: 21, 5: 13, 6: 22, 7: 32, 8: 25, 9: 37, 10: 36, 11: 35,
            12: 39, 13: 38, 14: 23, 15: 33, 16: 40, 17: 41}
FEATURE2MIL = {65568: 11, 65552: 10, 131104: 23, 131080: 21, 65600: 12}
LARGE = 1 << 22  # above this many elements only the raw bytes are expanded
OPSET = {6: "CoreML5", 7: "CoreML6", 8: "CoreML7", 9: "CoreML8", 10: "CoreML9"}
IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_@]*\Z")
# words of the MIL text form, which a compiled model is written in
RESERVED = set("any bool program func tensor list dict tuple true false string bf16 fp16 fp32 fp64 int8 int16 "
               "int32 int64 uint8 uint16 uint32 uint64 state".split())


# ----------------------------------------------------------------------------- package and blobs
def check_manifest(pkg):
    path = os.path.join(pkg, "Manifest.json")
    if not os.path.isfile(path):
        raise Bad(f"no Manifest.json in {pkg}")
    try:
        man = json.load(open(path))
    except ValueError as e:
        raise Bad(f"Manifest.json is not JSON: {e}")
    if man.get("fileFormatVersion") != "1.0.0":
        raise Bad(f"Manifest.json: fileFormatVersion is {man.get('fileFormatVersion')!r}, not '1.0.0'")
    items = man.get("itemInfoEntries")
    root = man.get("rootModelIdentifier")
    if not isinstance(items, dict) or root not in items:
        raise Bad("Manifest.json: rootModelIdentifier names no entry of itemInfoEntries")
    for ident, it in items.items():
        for key in ("path", "name", "author", "description"):
            if not isinstance(it.get(key), str):
                raise Bad(f"Manifest.json: item {ident} has no string '{key}'")
        if not os.path.exists(os.path.join(pkg, "Data", it["path"])):
            raise Bad(f"Manifest.json: item {ident}: Data/{it['path']} does not exist")
    # isValid opens read-only; constructing a ModelPackage would rewrite Manifest.json when it is dropped
    from coremltools.libmodelpackage import ModelPackage
    try:
        ok = ModelPackage.isValid(pkg)
    except Exception as e:
        raise Bad(f"libmodelpackage refuses the package: {e}")
    if not ok:
        raise Bad("libmodelpackage calls the package invalid")
    weights = None
    for it in items.values():
        if it["name"] == "weights" and it["author"] == "com.apple.CoreML":
            weights = os.path.join(pkg, "Data", it["path"])
    return os.path.join(pkg, "Data", items[root]["path"]), weights


class Blobs:
    """A blob v2 file: offset of a metadata record -> (MIL type, data bytes, padding bits)."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)
        self.size = os.path.getsize(path)
        if self.size < 64:
            raise Bad(f"{self.name}: {self.size} bytes, shorter than its 64-byte header")
        self.buf = np.memmap(path, np.uint8, "r")
        self.count, self.version = struct.unpack_from("<II", self.buf, 0)
        if self.version != 2:
            raise Bad(f"{self.name}: header version {self.version}, not 2")

    def record(self, off, who=""):
        where = f"{self.name}@{off}{' (' + who + ')' if who else ''}"
        if off % 64 or off < 64 or off + 64 > self.size:
            raise Bad(f"{where}: no metadata record can be there (file is {self.size} bytes)")
        sentinel, code, nbytes, data, pad = struct.unpack_from("<IIQQQ", self.buf, off)
        if sentinel != 0xDEADBEEF:
            raise Bad(f"{where}: sentinel is {sentinel:#010x}, not 0xdeadbeef")
        if code not in BLOB2MIL:
            raise Bad(f"{where}: unknown blob dtype code {code}")
        if data % 64:
            raise Bad(f"{where}: data offset {data} is not a multiple of 64")
        if data + nbytes > self.size:
            raise Bad(f"{where}: data [{data}, {data + nbytes}) runs past the end of the file ({self.size})")
        if pad > 7:
            raise Bad(f"{where}: {pad} padding bits")
        return BLOB2MIL[code], data, nbytes, pad

    def walk(self):
        off, out = 64, []
        for i in range(self.count):
            t, data, nbytes, _ = self.record(off, f"record {i} of {self.count}")
            out.append(off)
            off = -(-(data + nbytes) // 64) * 64
        if off < self.size:
            raise Bad(f"{self.name}: header counts {self.count} blobs, but the file goes on after byte {off}")
        return out


def unpack(raw, bits, n, signed):
    """n values of `bits` bits each out of bytes; the first value sits in the lowest bits."""
    if bits == 8:
        v = raw[:n].view(np.uint8)
    else:
        if bits in (1, 2, 4):
            word, per = raw, 8 // bits
        else:  # 3 and 6 bits: 24-bit words
            word, per = np.zeros(-(-len(raw) // 3) * 3, np.uint8), 24 // bits
            word[: len(raw)] = raw
            word = word.reshape(-1, 3).astype(np.uint32) @ np.array([1, 1 << 8, 1 << 16], np.uint32)
        v = np.empty(len(word) * per, np.uint8)
        for k in range(per):
            v[k::per] = (word >> (bits * k)) & ((1 << bits) - 1)
        v = v[:n]
    if signed:
        shift = 8 - bits
        v = (v << shift).view(np.int8) >> shift
    return v


# ----------------------------------------------------------------------------- raw protobuf checks
def tensor_type(vt, who):
    kind = vt.WhichOneof("type")
    if kind == "stateType":
        return tensor_type(vt.stateType.wrappedType, who)
    if kind != "tensorType":
        return None
    t = vt.tensorType
    if t.rank != len(t.dimensions):
        raise Bad(f"{who}: rank {t.rank} but {len(t.dimensions)} dimensions")
    if t.dataType not in MIL:
        raise Bad(f"{who}: data type code {t.dataType} is not known here")
    dims = []
    for d in t.dimensions:
        k = d.WhichOneof("dimension")
        if k is None:
            raise Bad(f"{who}: a dimension is neither constant nor unknown")
        dims.append(d.constant.size if k == "constant" else None)
    return t.dataType, tuple(dims)


class Program:
    def __init__(self, spec, weights_dir):
        self.spec, self.weights_dir = spec, weights_dir
        self.files, self.refs = {}, collections.Counter()

    def blob(self, ref, who):
        m = re.match(r"@model_path/(weights/[^/]+)\Z", ref.fileName)
        if not m:
            raise Bad(f"{who}: blob file name {ref.fileName!r} is not @model_path/weights/<file>")
        if self.weights_dir is None:
            raise Bad(f"{who}: a blob reference, but the package has no weights item")
        name = ref.fileName.rsplit("/", 1)[1]
        if name not in self.files:
            path = os.path.join(self.weights_dir, name)
            if not os.path.isfile(path):
                raise Bad(f"{who}: {ref.fileName} does not exist")
            self.files[name] = Blobs(path)
        return self.files[name]

    def check_value(self, v, who):
        tt = tensor_type(v.type, who)
        kind = v.WhichOneof("value")
        if kind is None:
            raise Bad(f"{who}: a value that is neither immediate nor in a blob file")
        if tt is None:
            return
        dtype, shape = tt
        if None in shape:
            raise Bad(f"{who}: a constant with an unknown dimension")
        n, (name, bits, _) = math.prod(shape), MIL[dtype]
        if kind == "blobFileValue":
            f = self.blob(v.blobFileValue, who)
            got, _, nbytes, pad = f.record(v.blobFileValue.offset, who)
            self.refs[(f.name, v.blobFileValue.offset)] += 1
            if got != dtype:
                raise Bad(f"{who}: type says {name}, the blob's metadata says {MIL.get(got, (got,))[0]}")
            want = -(-n * bits // 8)
            if nbytes != want:
                raise Bad(f"{who}: {name}{list(shape)} needs {want} bytes, the blob has {nbytes}")
            if bits < 8 and pad != want * 8 - n * bits:
                raise Bad(f"{who}: {pad} padding bits, should be {want * 8 - n * bits}")
            return
        iv = v.immediateValue
        if iv.WhichOneof("value") != "tensor":
            return
        field = iv.tensor.WhichOneof("value")
        if field is None:
            raise Bad(f"{who}: an immediate tensor with no field set")
        bytes_types = {10, 21, 25, 31, 33, 35, 36, 37, 38, 39}
        want = ("bytes" if dtype in bytes_types else "bools" if dtype == 1 else "strings" if dtype == 2
                else "floats" if dtype == 11 else "doubles" if dtype == 12
                else "longInts" if dtype in (24, 34) else "ints")
        if field != want:
            raise Bad(f"{who}: a {name} immediate is in '{field}', should be in '{want}'")
        have = len(getattr(iv.tensor, field).values)
        need = -(-n * bits // 8) if field == "bytes" else n
        if have != need:
            raise Bad(f"{who}: {name}{list(shape)} needs {need} {field}, has {have}")

    def raw_array(self, v, who):
        """The constant as (unpacked) numpy, from the file's or the message's bytes."""
        dtype, shape = tensor_type(v.type, who)
        _, bits, npt = MIL[dtype]
        n = math.prod(shape)
        if v.WhichOneof("value") == "blobFileValue":
            f = self.blob(v.blobFileValue, who)
            _, data, nbytes, _ = f.record(v.blobFileValue.offset, who)
            raw = np.asarray(f.buf[data:data + nbytes])
        else:
            field = v.immediateValue.tensor.WhichOneof("value")
            vals = getattr(v.immediateValue.tensor, field).values
            if field != "bytes":
                return np.array(list(vals)).astype(npt).reshape(shape)
            raw = np.frombuffer(vals, np.uint8)
        if bits < 8:
            return unpack(raw, bits, n, dtype == 25).reshape(shape)
        return raw.view(npt).reshape(shape)

    def check_block(self, block, scope, who):
        names = set(scope)
        for i in block.inputs:
            names.add(i.name)
        for k, op in enumerate(block.operations):
            label = op.outputs[0].name if op.outputs else "-"
            at = f"{who}: op {k} {op.type} '{label}'"
            if "name" not in op.attributes:
                raise Bad(f"{at}: no 'name' attribute")
            for a, v in op.attributes.items():
                self.check_value(v, f"{at} attribute {a}")
            if op.type == "const" and "val" not in op.attributes:
                raise Bad(f"{at}: no 'val' attribute")
            for p, arg in op.inputs.items():
                if not arg.arguments:
                    raise Bad(f"{at}: input {p} has no binding")
                for b in arg.arguments:
                    kind = b.WhichOneof("binding")
                    if kind == "name":
                        if b.name not in names:
                            raise Bad(f"{at}: input {p} names '{b.name}', which nothing before it defines")
                    elif kind == "value":
                        self.check_value(b.value, f"{at} input {p}")
                    else:
                        raise Bad(f"{at}: input {p} has an empty binding")
            for b in op.blocks:
                self.check_block(b, names, at)
            for o in op.outputs:
                if not IDENT.match(o.name) or o.name in RESERVED:
                    raise Bad(f"{at}: output name {o.name!r} is not an identifier, or is a reserved word")
                if o.name in names:
                    raise Bad(f"{at}: output name '{o.name}' is already taken")
                names.add(o.name)
                tensor_type(o.type, f"{at} output {o.name}")
        for o in block.outputs:
            if o not in names:
                raise Bad(f"{who}: block output '{o}' is defined nowhere")

    def check_function(self, fname, f):
        who = f"function {fname}"
        if f.opset not in f.block_specializations:
            raise Bad(f"{who}: opset {f.opset!r} has no block in block_specializations")
        want = OPSET.get(self.spec.specificationVersion)
        if want and f.opset != want:
            print(f"warning: {who}: opset {f.opset}, while specification version "
                  f"{self.spec.specificationVersion} goes with {want}")
        scope = {}
        for i in f.inputs:
            if i.name in scope or not IDENT.match(i.name) or i.name in RESERVED:
                raise Bad(f"{who}: bad or repeated input name {i.name!r}")
            scope[i.name] = i.type
            tensor_type(i.type, f"{who} input {i.name}")
        self.check_block(f.block_specializations[f.opset], scope, who)

    def check_description(self):
        d, prog = self.spec.description, self.spec.mlProgram
        if d.functions:
            if d.input or d.output or d.state:
                raise Bad("description: both 'functions' and model-level features are set")
            descs = {x.name: x for x in d.functions}
            if set(descs) != set(prog.functions):
                raise Bad(f"description lists functions {sorted(descs)}, the program has {sorted(prog.functions)}")
            if d.defaultFunctionName not in descs:
                raise Bad(f"defaultFunctionName {d.defaultFunctionName!r} is not one of {sorted(descs)}")
            if self.spec.specificationVersion < 9:
                raise Bad("several functions need specification version 9 or more")
        else:
            if list(prog.functions) != ["main"]:
                raise Bad(f"no 'functions' in the description, but the program has {sorted(prog.functions)}")
            descs = {"main": d}
        for fname, desc in descs.items():
            f = prog.functions[fname]
            who = f"description of {fname}"
            types = {i.name: i.type for i in f.inputs}
            states = {n for n, t in types.items() if t.WhichOneof("type") == "stateType"}
            if {x.name for x in desc.state} != states:
                raise Bad(f"{who}: states {sorted(x.name for x in desc.state)}, function has {sorted(states)}")
            if {x.name for x in desc.input} != set(types) - states:
                raise Bad(f"{who}: inputs {sorted(x.name for x in desc.input)}, function has {sorted(set(types) - states)}")
            block = f.block_specializations[f.opset]
            if [x.name for x in desc.output] != list(block.outputs):
                raise Bad(f"{who}: outputs {[x.name for x in desc.output]}, block has {list(block.outputs)}")
            for op in block.operations:
                for o in op.outputs:
                    types[o.name] = o.type
            for x in list(desc.input) + list(desc.output) + list(desc.state):
                kind = x.type.WhichOneof("Type")
                arr = (x.type.multiArrayType if kind == "multiArrayType"
                       else x.type.stateType.arrayType if kind == "stateType" else None)
                if arr is None or x.name not in types:
                    continue
                dtype, shape = tensor_type(types[x.name], who)
                if FEATURE2MIL.get(arr.dataType) != dtype:
                    raise Bad(f"{who}: {x.name} is {arr.dataType} in the description, {MIL[dtype][0]} in the function")
                if None not in shape and shape != () and tuple(arr.shape) != shape:
                    raise Bad(f"{who}: {x.name} has shape {list(arr.shape)} in the description, {list(shape)} in the function")


# ----------------------------------------------------------------------------- own dequantiser
def blocks(shape, groups, whole=False):
    """Slices along axis 0 of about 4M elements, each with the (broadcastable) group index per axis."""
    step = shape[0] if whole else max(1, (1 << 22) // max(1, math.prod(shape[1:])))
    for a in range(0, shape[0], step):
        z = min(a + step, shape[0])
        axes = [np.arange(a, z)] + [np.arange(n) for n in shape[1:]]
        sel = tuple((ax // (n // g)).reshape([-1 if i == j else 1 for j in range(len(shape))])
                    for i, (ax, n, g) in enumerate(zip(axes, shape, groups)))
        yield slice(a, z), sel


def own_dequant(prog, op, known, who):
    def get(p):
        if p in op.attributes:
            return prog.raw_array(op.attributes[p], who)
        if p not in op.inputs:
            return None
        b = op.inputs[p].arguments[0]
        return known.get(b.name) if b.WhichOneof("binding") == "name" else prog.raw_array(b.value, who)

    if op.type == "constexpr_lut_to_dense":
        idx, lut = get("indices"), get("lut")
        if "shape" in op.attributes:  # iOS 16 form: packed bytes, one table, explicit shape
            shape = tuple(int(x) for x in get("shape"))
            bits = int(math.log2(lut.size))
            return lut[unpack(idx.reshape(-1), bits, math.prod(shape), False)].reshape(shape)
        if idx is None or lut is None:
            return None
        if lut.shape[-1] != 1:  # vector entries: entry v of index i lands at i * V + v along vector_axis
            axis, sel = int(get("vector_axis")) % idx.ndim, next(blocks(idx.shape, lut.shape[:-2], whole=True))[1]
            got = np.moveaxis(lut[sel + (idx,)], -1, axis + 1)
            return got.reshape([n * lut.shape[-1] if k == axis else n for k, n in enumerate(idx.shape)])
        table, out = lut[..., 0], np.empty(idx.shape, lut.dtype)
        for rows, sel in blocks(idx.shape, table.shape[:-1]):
            out[rows] = table[sel + (idx[rows],)]
        return out
    if op.type == "constexpr_blockwise_shift_scale":
        data, scale, off = get("data"), get("scale"), get("offset")
        if data is None or scale is None:
            return None
        out = np.empty(data.shape, scale.dtype)
        for rows, sel in blocks(data.shape, scale.shape):
            x = data[rows].astype(np.float32)
            if off is not None:
                x -= off.astype(np.float32)[sel]
            out[rows] = x * scale.astype(np.float32)[sel]
        return out
    if op.type == "constexpr_affine_dequantize":
        data, scale, zp, axis = get("quantized_data"), get("scale"), get("zero_point"), int(get("axis"))
        shp = [1] * data.ndim
        shp[axis] = -1
        fit = lambda a: a.astype(np.float32).reshape(shp) if a.ndim else a.astype(np.float32)
        return ((data.astype(np.float32) - fit(zp)) * fit(scale)).astype(scale.dtype)
    return None


# ----------------------------------------------------------------------------- coremltools' own view
class Loader:
    """Runs coremltools' MIL loader over one function, checking after each op what the loader does not."""

    def __init__(self, spec, weights_dir):
        from coremltools.converters.mil.frontend.milproto import load
        from coremltools.converters.mil.frontend.milproto.helper import proto_to_types
        from coremltools.converters.mil.mil import types
        self.spec, self.weights_dir = spec, weights_dir or ""
        self.load, self.proto_to_types, self.types = load, proto_to_types, types

    def function(self, fname):
        """The function as pymil, and warnings with their counts."""
        from coremltools import proto
        one = proto.Model_pb2.Model(specificationVersion=self.spec.specificationVersion)
        one.mlProgram.version = 1
        one.mlProgram.functions[fname].CopyFrom(self.spec.mlProgram.functions[fname])
        original, counter, hints = self.load._load_operation, [0], collections.Counter()

        def watched(context, op):
            at = f"function {fname}: op {counter[0]} {op.type} '{op.outputs[0].name if op.outputs else '-'}'"
            counter[0] += 1
            try:
                original(context, op)
            except Bad:
                raise
            except Exception as e:
                raise Bad(f"{at}: {type(e).__name__}: {e}")
            hints.update(self.hints(context, op))
            for o in op.outputs:
                self.check_output(at, op, o, context.name_to_var[o.name].sym_type)

        self.load._load_operation = watched
        try:
            program = self.load.load(one, self.spec.specificationVersion, self.weights_dir)
        except Bad:
            raise
        except Exception as e:
            raise Bad(f"function {fname}: {type(e).__name__}: {e}")
        finally:
            self.load._load_operation = original
        return program.functions[fname], hints

    @staticmethod
    def hints(context, op):
        if not op.outputs or op.type == "const":
            return
        loaded = context.name_to_var[op.outputs[0].name].op
        given = set(op.inputs) | set(op.attributes)
        left = sorted(k for k, v in loaded.default_inputs().items() if v is not None and k not in given)
        if left:
            yield (f"{op.type} without {', '.join(left)} (coremltools fills these in; "
                   "Apple's compiler may demand them)")
        if not op.type.startswith("constexpr_") and any(
                x.WhichOneof("binding") == "value" for arg in op.inputs.values() for x in arg.arguments):
            yield f"{op.type} with an inline value (coremltools itself always names a const op)"

    def check_output(self, at, op, output, got):
        types, want = self.types, self.proto_to_types(output.type)
        if op.type == "const" and not types.is_tensor(got):
            same = got == want
        else:
            same = types.is_compatible_type(got, want)
        if same and types.is_tensor(got) and types.is_tensor(want):
            known = [(a, b) for a, b in zip(got.get_shape(), want.get_shape())
                     if not (types.symbolic.is_symbolic(a) or types.symbolic.is_symbolic(b))]
            same = len(got.get_shape()) == len(want.get_shape()) and all(a == b for a, b in known)
        if not same:
            raise Bad(f"{at}: output {output.name} declared {want.__type_info__()}, inferred {got.__type_info__()}")


def expand(prog, loaded, op, known, at):
    """The arrays a constexpr op expands to, and by whom: coremltools, and where possible the raw bytes too."""
    mine, theirs = own_dequant(prog, op, known, at), None
    if mine is None or math.prod(tensor_type(op.outputs[0].type, at)[1]) <= LARGE:
        try:
            if loaded.op_type == "constexpr_lut_to_dense" and loaded.lut.val is None:
                axis = None if loaded.vector_axis is None else loaded.vector_axis.val
                theirs = loaded.decompress(loaded.indices.val, known[op.inputs["lut"].arguments[0].name], axis)
            else:
                theirs = loaded.materialized_val_inference()
        except Exception as e:
            raise Bad(f"{at}: cannot be expanded: {type(e).__name__}: {e}")
    outs = theirs if isinstance(theirs, tuple) else (mine if theirs is None else theirs,)
    for o, a in zip(op.outputs, outs):
        want = tensor_type(o.type, at)
        if a.shape != want[1]:
            raise Bad(f"{at}: expands to {a.shape}, declared {want[1]}")
        if a.dtype.kind == "f" and not np.isfinite(a).all():
            raise Bad(f"{at}: {int((~np.isfinite(a)).sum())} values are not finite")
    if mine is None:
        return outs, "coremltools only"
    if theirs is None:
        return outs, "raw bytes only (large)"
    a, b = np.asarray(theirs, np.float64), np.asarray(mine, np.float64)
    tol = 0 if op.type == "constexpr_lut_to_dense" else 2e-3 * max(1e-12, np.abs(b).max())
    if not np.all(np.abs(a - b) <= tol):
        raise Bad(f"{at}: coremltools and the raw bytes disagree, by up to {np.abs(a - b).max()}")
    return outs, "coremltools and raw bytes agree"


def statistics(array):
    v = array.reshape(-1)
    sq = sum(float(np.square(v[i:i + LARGE].astype(np.float64)).sum()) for i in range(0, v.size, LARGE))
    return (f"{array.dtype}{list(array.shape)} min {float(v.min()):.5g} max {float(v.max()):.5g} "
            f"rms {math.sqrt(sq / v.size):.5g}")


class Weights:
    """Where the --weights of one package go."""

    def __init__(self, out, package):
        name = os.path.basename(package).removesuffix(".mlpackage")
        self.out, self.index = out and os.path.join(out, name), []

    def add(self, function, value, parameter, array):
        array = np.asarray(array)
        if self.out is None or array.dtype.kind not in "fiub":  # a parameter left out, or a string
            return
        name = value if parameter is None else f"{value}.{parameter}"
        os.makedirs(os.path.join(self.out, function), exist_ok=True)
        little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        little_endian.tofile(os.path.join(self.out, function, name + ".bin"))
        self.index.append({"function": function, "value": value, "parameter": parameter,
                           "dtype": array.dtype.name, "shape": list(array.shape)})

    def close(self):
        if self.out is not None:
            os.makedirs(self.out, exist_ok=True)
            with open(os.path.join(self.out, "index.json"), "w") as f:
                json.dump(self.index, f, indent=1)


# ----------------------------------------------------------------------------- main
def open_model(model_path):
    from coremltools import proto
    spec = proto.Model_pb2.Model()
    try:
        with open(model_path, "rb") as f:
            spec.ParseFromString(f.read())
    except Exception as e:
        raise Bad(f"{model_path} is not a Model protobuf: {e}")
    if spec.WhichOneof("Type") != "mlProgram":
        raise Bad(f"the model's type is {spec.WhichOneof('Type')}, not mlProgram")
    if spec.mlProgram.version != 1:
        raise Bad(f"mlProgram.version is {spec.mlProgram.version}, not 1")
    if not spec.mlProgram.functions:
        raise Bad("the program has no function")
    return spec


def check_structure(package, spec, weights_dir):
    """Everything that the bytes alone say."""
    prog = Program(spec, weights_dir)
    files = sorted(os.listdir(weights_dir)) if weights_dir and os.path.isdir(weights_dir) else []
    records = {}
    for name in files:
        b = prog.files[name] = Blobs(os.path.join(weights_dir, name))
        records[name] = b.walk()
    for fname, f in spec.mlProgram.functions.items():
        prog.check_function(fname, f)
    prog.check_description()
    for (name, off) in prog.refs:
        if off not in records.get(name, []):
            raise Bad(f"{name}@{off} is referenced, but is not a record that a walk from the header reaches")
    unused = sum(1 for n, offs in records.items() for o in offs if (n, o) not in prog.refs)
    print(f"{package}: specification version {spec.specificationVersion}, {len(spec.mlProgram.functions)} function(s), "
          + ", ".join(f"{n}: {prog.files[n].size} bytes, {len(records[n])} blobs" for n in files)
          + (f", {unused} never referenced" if unused else ""))
    return prog


def check_weights(quiet, prog, fname, block, loaded, weights, npz):
    """Every constant of one function, as coremltools sees it and as its bytes say."""
    by_name = {o.outputs[0].name: o for o in loaded.operations if o.outputs}
    nested = {b.name for o in block.operations if o.type.startswith("constexpr_")
              for a in o.inputs.values() for b in a.arguments if b.WhichOneof("binding") == "name"}
    known = {}
    for op in block.operations:
        name = op.outputs[0].name if op.outputs else None
        if op.type == "const" and name in by_name:
            weights.add(fname, name, None, by_name[name].outputs[0].val)
        if not op.type.startswith("constexpr_"):
            continue
        at = f"function {fname}: {op.type} '{name}'"
        if name not in by_name:
            raise Bad(f"{at}: lost while loading")
        for parameter, var in by_name[name].inputs.items():
            weights.add(fname, name, parameter, var.val)
        outs, note = expand(prog, by_name[name], op, known, at)
        known.update({o.name: a for o, a in zip(op.outputs, outs) if o.name in nested})
        if not quiet:
            print(f"    {op.type} {name}: {statistics(outs[0])}; {note}")
        weights.add(fname, name, None, outs[0])
        npz[f"{fname}/{name}"] = outs[0]


def check(package, args):
    model_path, weights_dir = check_manifest(package)
    spec = open_model(model_path)
    prog = check_structure(package, spec, weights_dir)
    loader, weights, npz = Loader(spec, weights_dir), Weights(args.weights, package), {}
    for fname in sorted(spec.mlProgram.functions):
        func = spec.mlProgram.functions[fname]
        loaded, hints = loader.function(fname)
        for h, n in sorted(hints.items()):
            print(f"warning: function {fname}: {n} x {h}")
        block = func.block_specializations[func.opset]
        counts = collections.Counter(o.type for o in block.operations)
        print(f"  {fname} ({func.opset}): " + ", ".join(f"{k} {v}" for k, v in sorted(counts.items())))
        check_weights(args.quiet, prog, fname, block, loaded, weights, npz)
    shared = [r for r, n in prog.refs.items() if n > 1]
    if shared:
        print(f"  {len(shared)} of {len(prog.refs)} blobs are referenced more than once")
    weights.close()
    if args.npz:
        np.savez(args.npz, **npz)
    print("OK")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("packages", nargs="+", metavar="package")
    ap.add_argument("--npz", help="write every expanded constexpr weight here (one package only)")
    ap.add_argument("--weights", metavar="OUT_DIR", help="write every weight, as coremltools reads it, here")
    ap.add_argument("--quiet", action="store_true")
    args = ap.parse_args()
    if args.npz and len(args.packages) > 1:
        ap.error("--npz takes one package")
    warnings.filterwarnings("ignore")
    logging.disable(logging.CRITICAL)
    failed = 0
    for package in args.packages:
        try:
            check(package.rstrip("/"), args)
        except Bad as e:
            print(f"FAIL: {package}: {e}", file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
