//! A module tried out on its own: its graph, run by the reference interpreter. For tests.

use half::f16;
use lone_mil::package::Package;
use lone_mil::{
    BlobFile, BlobWriter, BuildError, DType, FunctionBuilder, Interpreter, LoadOptions, Model, Program,
    Reference, TensorMut, TensorRef, TensorType, ValueId,
};

use crate::weights::Weight;

/// Weights for a module, and what runs it.
#[derive(Default)]
pub(crate) struct Trial {
    layout: lone_mil::BlobLayout,
    values: Vec<Vec<f16>>,
}

impl Trial {
    pub(crate) fn weight(&mut self, name: &str, shape: [usize; 4], values: &[f32]) -> Weight {
        let blob = self.layout.place(DType::F16, values.len()).unwrap();
        self.values.push(halves(values));
        Weight::plain(name.into(), TensorType::f16(shape), blob)
    }

    /// What `build` makes of `inputs`, each a shape and its values.
    pub(crate) fn run(
        self,
        inputs: &[([usize; 4], &[f32])],
        build: impl FnOnce(&mut FunctionBuilder, &[ValueId]) -> Result<ValueId, BuildError>,
    ) -> Vec<f32> {
        let mut b = FunctionBuilder::new("f");
        let declare = |(i, (shape, _)): (usize, &([usize; 4], &[f32]))| {
            b.input(&format!("x{i}"), TensorType::f16(*shape)).unwrap()
        };
        let ids: Vec<ValueId> = inputs.iter().enumerate().map(declare).collect();
        let y = build(&mut b, &ids).unwrap();
        b.output(y).unwrap();
        let mut y = vec![f16::ZERO; b.shape(y).elements()];
        let program = Program { default_function: "f".into(), functions: vec![b.finish().unwrap()] };
        let package = Package { program, blobs: self.blobs(), metadata: Default::default() };
        let mut model = Interpreter::<Reference>::new().prepare(package, &LoadOptions::default()).unwrap();
        let inputs: Vec<Vec<f16>> = inputs.iter().map(|(_, values)| halves(values)).collect();
        let inputs: Vec<TensorRef<'_>> = inputs.iter().map(|values| TensorRef::F16(values)).collect();
        model.run("f", &inputs, &mut [TensorMut::F16(&mut y)]).unwrap();
        y.into_iter().map(f16::to_f32).collect()
    }

    fn blobs(&self) -> BlobFile {
        let mut writer = BlobWriter::new(Vec::new(), self.values.len() as u32).unwrap();
        for values in &self.values {
            writer.put(DType::F16, values.len(), bytemuck::cast_slice(values)).unwrap();
        }
        BlobFile::from_bytes("weight.bin", &writer.finish().unwrap()).unwrap()
    }
}

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().copied().map(f16::from_f32).collect()
}
