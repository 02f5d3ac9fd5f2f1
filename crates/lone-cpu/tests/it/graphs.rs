//! The graphs of `docs/graphs.md`, small, with random weights, and how to run them on every backend.

use std::num::NonZeroUsize;

use half::f16;
use lone_cpu::{CpuBackend, CpuModel, CpuOptions, Isa};
use lone_mil::package::{Metadata, Package};
use lone_mil::{
    BlobFile, BlobLayout, BlobWriter, BuildError, DType, Function, FunctionBuilder, Interpreter, LoadOptions,
    Model, Port, Program, Reference, TensorMut, TensorRef, TensorType, ValueId,
};

/// A function in the making and the blobs it points at.
pub(crate) struct Net {
    pub(crate) b: FunctionBuilder,
    layout: BlobLayout,
    blobs: Vec<Vec<u8>>,
    seed: u64,
    /// Weights of nothing but zeros, for graphs of real dimensions.
    pub(crate) hollow: bool,
}

type Built = Result<ValueId, BuildError>;

impl Net {
    pub(crate) fn new(name: &str) -> Self {
        Net {
            b: FunctionBuilder::new(name),
            layout: BlobLayout::default(),
            blobs: Vec::new(),
            seed: 1,
            hollow: false,
        }
    }

    /// An fp16 weight of random numbers within `scale`.
    pub(crate) fn weight(&mut self, dims: &[usize], scale: f32) -> Built {
        self.seed += 1;
        let elements: usize = dims.iter().product();
        self.blobs.push(match self.hollow {
            true => vec![0; 2 * elements],
            false => random(self.seed, elements, scale).iter().flat_map(|x| x.to_le_bytes()).collect(),
        });
        let blob = self.layout.place(DType::F16, elements).expect("a small blob");
        self.b.weight(&format!("w{}", self.blobs.len()), TensorType::f16(dims.to_vec()), blob)
    }

    pub(crate) fn input(&mut self, name: &str, dims: &[usize]) -> Built {
        self.b.input(name, TensorType::f16(dims.to_vec()))
    }

    pub(crate) fn output(&mut self, id: ValueId, name: &str) -> Result<(), BuildError> {
        let id = self.b.name(id, name)?;
        self.b.output(id)
    }

    pub(crate) fn finish(self) -> Result<(Function, Vec<u8>), BuildError> {
        let mut writer = BlobWriter::new(Vec::new(), self.blobs.len() as u32).expect("writing to memory");
        for blob in &self.blobs {
            writer.put(DType::F16, blob.len() / 2, blob).expect("writing to memory");
        }
        Ok((self.b.finish()?, writer.finish().expect("writing to memory")))
    }

    fn half(&mut self, number: f32) -> Built {
        self.b.scalar_f16(number)
    }

    fn channels(&self, id: ValueId) -> usize {
        self.b.shape(id)[1]
    }

    /// `w x`, the weight 16 times as large and the product scaled back, in `parts`.
    pub(crate) fn linear(&mut self, x: ValueId, out: usize, parts: usize) -> Built {
        let width = self.channels(x) / parts;
        let sizes = vec![width as i32; parts];
        let split = if parts > 1 { self.b.split_sizes(x, &sizes, 1)? } else { vec![x] };
        let mut sum: Option<ValueId> = None;
        for x in split {
            let w = self.weight(&[out, width, 1, 1], 16.0 / (width as f32).sqrt())?;
            let product = self.b.conv1x1(x, w)?;
            let back = self.half(0.0625)?;
            let scaled = self.b.mul(product, back)?;
            sum = Some(match sum {
                Some(sum) => self.b.add(sum, scaled)?,
                None => scaled,
            });
        }
        Ok(sum.expect("at least one part"))
    }

    /// The range-safe norm over `axis`.
    pub(crate) fn rms_norm(&mut self, x: ValueId, axis: usize) -> Built {
        let mut dims = vec![1; 4];
        dims[axis] = self.b.shape(x)[axis];
        let (weight, axes) = (self.weight(&dims, 1.0)?, [axis as i32]);
        let (floor, root) = (self.half(0.000_976_562_5)?, self.half(1e-5f32.sqrt())?);
        let magnitude = self.b.abs(x)?;
        let largest = self.b.reduce_max(magnitude, &axes, true)?;
        let largest = self.b.maximum(largest, floor)?;
        let y = self.b.real_div(x, largest)?;
        let squares = self.b.mul(y, y)?;
        let mean = self.b.reduce_mean(squares, &axes, true)?;
        let epsilon = self.b.real_div(root, largest)?;
        let epsilon = self.b.mul(epsilon, epsilon)?;
        let sum = self.b.add(mean, epsilon)?;
        let root = self.b.rsqrt(sum)?;
        let normal = self.b.mul(y, root)?;
        self.b.mul(normal, weight)
    }

    /// `mul(mul(x, rsqrt(add(reduce_mean(mul(x, x)), eps))), w)`
    pub(crate) fn plain_norm(&mut self, x: ValueId, axis: usize) -> Built {
        let mut dims = vec![1; 4];
        dims[axis] = self.b.shape(x)[axis];
        let (weight, epsilon) = (self.weight(&dims, 1.0)?, self.half(1e-5)?);
        let squares = self.b.mul(x, x)?;
        let mean = self.b.reduce_mean(squares, &[axis as i32], true)?;
        let sum = self.b.add(mean, epsilon)?;
        let root = self.b.rsqrt(sum)?;
        let normal = self.b.mul(x, root)?;
        self.b.mul(normal, weight)
    }

    fn logistic_divisor(&mut self, x: ValueId) -> Built {
        let (minus, one) = (self.half(-1.0)?, self.half(1.0)?);
        let negative = self.b.mul(x, minus)?;
        let power = self.b.exp(negative)?;
        self.b.add(power, one)
    }

    pub(crate) fn sigmoid(&mut self, x: ValueId) -> Built {
        let (one, divisor) = (self.half(1.0)?, self.logistic_divisor(x)?);
        self.b.real_div(one, divisor)
    }

    pub(crate) fn silu(&mut self, x: ValueId) -> Built {
        let divisor = self.logistic_divisor(x)?;
        self.b.real_div(x, divisor)
    }

    pub(crate) fn feed_forward(&mut self, x: ValueId, width: usize, parts: usize) -> Built {
        let (gate, up) = (self.linear(x, width, 1)?, self.linear(x, width, 1)?);
        let gate = self.silu(gate)?;
        let hidden = self.b.mul(gate, up)?;
        let channels = self.channels(x);
        self.linear(hidden, channels, parts)
    }

    pub(crate) fn rope(&mut self, x: ValueId, cos: ValueId, sin: ValueId) -> Built {
        let minus = self.half(-1.0)?;
        let halves = self.b.split(x, 2, 2)?;
        let negative = self.b.mul(halves[1], minus)?;
        let rotated = self.b.concat(&[negative, halves[0]], 2)?;
        let (straight, turned) = (self.b.mul(x, cos)?, self.b.mul(rotated, sin)?);
        self.b.add(straight, turned)
    }

    /// The K-tap convolution over `past ++ v`; returns the result and the window, a row a step.
    pub(crate) fn short_conv(&mut self, v: ValueId, past: ValueId) -> Result<(ValueId, ValueId), BuildError> {
        let (channels, queries) = (self.channels(v), self.b.shape(v)[3]);
        let rows = self.b.transpose(v, &[0, 1, 3, 2])?;
        let window = self.b.concat(&[past, rows], 2)?;
        let taps = self.b.shape(past)[2] + 1;
        let mut sum: Option<ValueId> = None;
        for k in 0..taps {
            let w = self.weight(&[1, channels, 1, 1], 1.0)?;
            let slice = self.b.slice_axis(window, 2, k..k + queries)?;
            let term = self.b.mul(slice, w)?;
            sum = Some(match sum {
                Some(sum) => self.b.add(sum, term)?,
                None => term,
            });
        }
        let y = self.b.transpose(sum.expect("at least one tap"), &[0, 1, 3, 2])?;
        Ok((y, window))
    }

    /// `x + conv operator`, `x + feed_forward`, as an LFM2 layer of the short convolution.
    pub(crate) fn conv_layer(&mut self, x: ValueId, past: ValueId, width: usize) -> Built {
        let channels = self.channels(x);
        let n = self.rms_norm(x, 1)?;
        let gates = self.linear(n, 3 * channels, 1)?;
        let parts = self.b.split(gates, 3, 1)?;
        let v = self.b.mul(parts[0], parts[2])?;
        let (y, window) = self.short_conv(v, past)?;
        self.output(window, "window")?;
        let y = self.b.mul(parts[1], y)?;
        let y = self.linear(y, channels, 1)?;
        let x = self.b.add(x, y)?;
        self.feed_forward_layer(x, width)
    }

    /// The same with attention of H heads that share G, over `past` keys and values `(1,G,T,d)`.
    pub(crate) fn attention_layer(
        &mut self,
        x: ValueId,
        [cos, sin, mask]: [ValueId; 3],
        past: [ValueId; 2],
        width: usize,
    ) -> Built {
        let (channels, queries) = (self.channels(x), self.b.shape(x)[3]);
        let [_, groups, _, head_dim] = dims(&self.b, past[0]);
        let n = self.rms_norm(x, 1)?;
        let mut qkv = Vec::new();
        for heads in [channels / head_dim, groups, groups] {
            let y = self.linear(n, heads * head_dim, 1)?;
            qkv.push(self.b.reshape(y, &[1, heads, head_dim, queries].map(|dim| dim as i32))?);
        }
        for rotated in &mut qkv[..2] {
            let normal = self.rms_norm(*rotated, 2)?;
            *rotated = self.rope(normal, cos, sin)?;
        }
        let [q, k, v] = [qkv[0], qkv[1], qkv[2]];
        for (new, name) in [(k, "k_new"), (v, "v_new")] {
            let rows = self.b.transpose(new, &[0, 1, 3, 2])?;
            self.output(rows, name)?;
        }
        let y = self.attention([q, k, v], &[past], &[mask])?;
        let y = self.b.reshape(y, &[1, channels as i32, 1, queries as i32])?;
        let y = self.linear(y, channels, 1)?;
        let x = self.b.add(x, y)?;
        self.feed_forward_layer(x, width)
    }

    fn feed_forward_layer(&mut self, x: ValueId, width: usize) -> Built {
        let n = self.rms_norm(x, 1)?;
        let y = self.feed_forward(n, width, if width > 4096 { 2 } else { 1 })?;
        self.b.add(x, y)
    }

    /// Attention of q (1,H,d,S) over the rows of `past` and then the new ones, k and v (1,G,d,S).
    ///
    /// With one mask, past and new are joined; with one a segment, each is attended to by itself.
    pub(crate) fn attention(&mut self, qkv: [ValueId; 3], past: &[[ValueId; 2]], masks: &[ValueId]) -> Built {
        let [_, heads, head_dim, queries] = dims(&self.b, qkv[0]);
        let [_, groups, _, _] = dims(&self.b, qkv[1]);
        let stacked = [1, groups, heads / groups * queries, head_dim].map(|dim| dim as i32);
        let scale = self.half((head_dim as f32).powf(-0.5))?;
        let q = self.b.mul(qkv[0], scale)?;
        let q = self.b.transpose(q, &[0, 1, 3, 2])?;
        let q = self.b.reshape(q, &stacked)?;
        let keys = self.b.transpose(qkv[1], &[0, 1, 3, 2])?;
        let values = self.b.transpose(qkv[2], &[0, 1, 3, 2])?;
        let by_head = [1, heads, queries, head_dim].map(|dim| dim as i32);
        let o = match masks {
            [mask] => {
                let keys = self.b.concat(&[past[0][0], keys], 2)?;
                let values = self.b.concat(&[past[0][1], values], 2)?;
                let scores = self.scores(q, keys, *mask, heads)?;
                let p = self.b.softmax(scores, -1)?;
                self.weighted(p, values, &stacked, &by_head)?
            }
            _ => {
                let segments: Vec<[ValueId; 2]> = past.iter().copied().chain([[keys, values]]).collect();
                self.segments(q, &segments, masks, &stacked, &by_head)?
            }
        };
        self.b.transpose(o, &[0, 1, 3, 2])
    }

    fn scores(&mut self, q: ValueId, keys: ValueId, mask: ValueId, heads: usize) -> Built {
        let scores = self.b.matmul(q, keys, false, true)?;
        let [_, _, queries, columns] = dims(&self.b, mask);
        let scores = self.b.reshape(scores, &[1, heads as i32, queries as i32, columns as i32])?;
        self.b.add(scores, mask)
    }

    fn weighted(&mut self, p: ValueId, values: ValueId, stacked: &[i32; 4], by_head: &[i32; 4]) -> Built {
        let columns = dims(&self.b, values)[2] as i32;
        let p = self.b.reshape(p, &[1, stacked[1], stacked[2], columns])?;
        let o = self.b.matmul(p, values, false, false)?;
        self.b.reshape(o, by_head)
    }

    fn segments(
        &mut self,
        q: ValueId,
        segments: &[[ValueId; 2]],
        masks: &[ValueId],
        stacked: &[i32; 4],
        by_head: &[i32; 4],
    ) -> Built {
        let mut parts = Vec::new();
        for (&[keys, values], &mask) in segments.iter().zip(masks) {
            let scores = self.scores(q, keys, mask, by_head[1] as usize)?;
            let max = self.b.reduce_max(scores, &[-1], true)?;
            let p = self.b.softmax(scores, -1)?;
            let top = self.b.reduce_max(p, &[-1], true)?;
            parts.push((max, top, self.weighted(p, values, stacked, by_head)?));
        }
        let mut largest = parts[0].0;
        for &(max, ..) in &parts[1..] {
            largest = self.b.maximum(largest, max)?;
        }
        let many = self.half(64.0)?;
        let mut shares = Vec::new();
        for &(max, top, _) in &parts {
            let less = self.b.sub(max, largest)?;
            let (power, top) = (self.b.exp(less)?, self.b.mul(top, many)?);
            shares.push(self.b.real_div(power, top)?);
        }
        let mut total = shares[0];
        for &share in &shares[1..] {
            total = self.b.add(total, share)?;
        }
        let mut out: Option<ValueId> = None;
        for (&(.., o), &share) in parts.iter().zip(&shares) {
            let weight = self.b.real_div(share, total)?;
            let term = self.b.mul(o, weight)?;
            out = Some(match out {
                Some(out) => self.b.add(out, term)?,
                None => term,
            });
        }
        Ok(out.expect("at least one segment"))
    }
}

fn dims(b: &FunctionBuilder, id: ValueId) -> [usize; 4] {
    b.shape(id).to_vec().try_into().expect("activations have four axes")
}

/// Numbers within `scale`, the same for the same seed.
pub(crate) fn random(seed: u64, len: usize, scale: f32) -> Vec<f16> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f16::from_f32(((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * scale)
    };
    (0..len).map(|_| next()).collect()
}

/// A package of these functions, which share their blobs.
pub(crate) fn package(functions: Vec<Function>, weights: &[u8]) -> Package {
    let program = Program { default_function: functions[0].name.clone(), functions };
    let blobs = BlobFile::from_bytes("weight.bin", weights).expect("blobs just written");
    Package { program, blobs, metadata: Metadata::default() }
}

/// Random numbers for every input, but for masks: those hide some keys, and never the last.
pub(crate) fn inputs(function: &Function) -> Vec<Vec<f16>> {
    let values = function.inputs.iter().map(|&id| function.value(id));
    let input = |(seed, value): (usize, &lone_mil::Value)| {
        let shape = &value.ty.tensor().shape;
        let numbers = random(seed as u64 + 77, shape.elements(), 1.0);
        if !value.name.starts_with("mask") {
            return numbers;
        }
        let columns = shape[3];
        let hidden = f16::from_f32(-40000.0);
        let hide = |(i, x): (usize, f16)| {
            if x.to_f32() > 0.3 && i % columns != columns - 1 { hidden } else { f16::ZERO }
        };
        numbers.into_iter().enumerate().map(hide).collect()
    };
    values.enumerate().map(input).collect()
}

/// The outputs of `function` on `inputs`, all fp16.
pub(crate) fn run(model: &mut dyn Model, function: &str, inputs: &[Vec<f16>]) -> Vec<Vec<f32>> {
    let ports = model.signature(function).expect("a loaded function").outputs.clone();
    let mut outputs: Vec<Vec<f16>> =
        ports.iter().map(|port| vec![f16::NAN; port.ty.shape.elements()]).collect();
    let inputs: Vec<TensorRef<'_>> = inputs.iter().map(|input| TensorRef::F16(input)).collect();
    let mut refs: Vec<TensorMut<'_>> = outputs.iter_mut().map(|output| TensorMut::F16(output)).collect();
    model.run(function, &inputs, &mut refs).expect("a run without a fault");
    outputs.into_iter().map(|output| output.into_iter().map(f16::to_f32).collect()).collect()
}

/// A backend on two threads.
pub(crate) fn backend(isa: Isa, fuse: bool) -> CpuBackend {
    CpuBackend::new(CpuOptions {
        threads: NonZeroUsize::new(2),
        isa: Some(isa),
        fuse,
        ..CpuOptions::default()
    })
}

/// `net` compiled for every instruction set, fused, next to the interpreter's and the unfused outputs.
///
/// Asserts that all agree, and returns the kinds of the fused steps.
pub(crate) fn check(net: impl Fn() -> Result<(Function, Vec<u8>), BuildError>) -> Vec<&'static str> {
    let (function, weights) = net().expect("a graph that can be built");
    let (name, given) = (function.name.clone(), inputs(&function));
    let options = LoadOptions::default();
    let mut oracle = Interpreter::<Reference>::new()
        .prepare(package(vec![function.clone()], &weights), &options)
        .expect("the interpreter runs all of it");
    let expected = run(&mut oracle, &name, &given);
    let mut kinds = Vec::new();
    for isa in Isa::available() {
        let compiled = |fuse| -> CpuModel {
            let package = package(vec![function.clone()], &weights);
            backend(isa, fuse).compile(package, &options).expect("the backend runs all of it")
        };
        let (mut fused, mut unfused) = (compiled(true), compiled(false));
        let (one, other) = (run(&mut fused, &name, &given), run(&mut unfused, &name, &given));
        for ((one, other), expected) in one.iter().zip(&other).zip(&expected) {
            assert_close(one, other, 1e-3, &format!("{isa}: fused and unfused"));
            assert_close(one, expected, 1e-2, &format!("{isa}: fused and interpreted"));
        }
        assert_eq!(run(&mut fused, &name, &given), one, "{isa}: a second run gives the same");
        kinds = fused.plan(&name).expect("a loaded function").kinds().collect();
    }
    kinds
}

/// Buffers for every port of a function, all zeros.
pub(crate) struct Ports {
    inputs: Vec<Vec<f16>>,
    outputs: Vec<Vec<f16>>,
}

impl Ports {
    pub(crate) fn zeros(model: &CpuModel, function: &str) -> Self {
        let signature = model.plan(function).expect("a loaded function").signature();
        let buffers =
            |ports: &[Port]| ports.iter().map(|port| vec![f16::ZERO; port.ty.shape.elements()]).collect();
        Ports { inputs: buffers(&signature.inputs), outputs: buffers(&signature.outputs) }
    }

    /// Runs `function` and returns how often this thread asked for memory meanwhile.
    pub(crate) fn count_allocations(&mut self, model: &mut CpuModel, function: &str) -> u64 {
        let inputs: Vec<TensorRef<'_>> = self.inputs.iter().map(|input| TensorRef::F16(input)).collect();
        let mut outputs: Vec<TensorMut<'_>> =
            self.outputs.iter_mut().map(|output| TensorMut::F16(output)).collect();
        let run = || model.run(function, &inputs, &mut outputs).expect("a run without a fault");
        allocation_counter::measure(run).count_total
    }
}

/// Asserts that no element is further off than `tolerance` of the largest.
pub(crate) fn assert_close(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    let largest = expected.iter().fold(0f32, |largest, x| largest.max(x.abs()));
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (found - expected).abs();
        assert!(off <= tolerance * largest, "{what}: element {i} is {found}, not {expected}");
    }
}
