//! What is compiled: a MIL function whose operations have been brought to few forms.
//!
//! Nodes stand in execution order, each value has one producer. A rewrite replaces the node that produces a value
//! and keeps the value; what the old node alone made use of is then dead and dropped.

use lone_mil::{BlobError, BlobFile, Literal, TensorType, ValueId};

use super::constants::held;
use super::kind::Kind;
use super::palettes::Palettes;

/// A function while it is compiled.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    /// Its name.
    pub(crate) function: String,
    pub(crate) values: Vec<Value>,
    /// In execution order; `None` where a node has died.
    pub(crate) nodes: Vec<Option<Node>>,
    /// In signature order.
    pub(crate) inputs: Vec<ValueId>,
    /// In signature order, kept values last.
    pub(crate) outputs: Vec<ValueId>,
}

/// A value: at most one of `constant` and `producer` is set, neither for an input.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) ty: TensorType,
    pub(crate) constant: Option<Constant>,
    /// Index of the node it comes from.
    pub(crate) producer: Option<usize>,
    /// How many arguments of live nodes and outputs of the function it is.
    pub(crate) uses: usize,
}

/// Something known when the function is compiled.
#[derive(Debug, Clone)]
pub(crate) enum Constant {
    Literal(Literal),
    Palettes(Box<Palettes>),
}

impl Constant {
    /// Its elements.
    ///
    /// # Errors
    /// [`BlobError`] for what is not in `blobs` as its type says.
    pub(crate) fn held(&self, blobs: &BlobFile) -> Result<Literal, BlobError> {
        match self {
            Constant::Literal(literal) => held(literal, blobs),
            Constant::Palettes(palettes) => palettes.expanded(blobs),
        }
    }
}

/// An operation.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Name of the MIL operation it was or replaces.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) inputs: Vec<ValueId>,
    pub(crate) output: ValueId,
}

impl Graph {
    /// A graph of nothing but inputs.
    pub(crate) fn new(function: &str, inputs: impl IntoIterator<Item = (String, TensorType)>) -> Self {
        let mut graph = Graph {
            function: function.into(),
            values: Vec::new(),
            nodes: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        for (name, ty) in inputs {
            let id = graph.value(name, ty);
            graph.inputs.push(id);
        }
        graph
    }

    fn value(&mut self, name: String, ty: TensorType) -> ValueId {
        self.values.push(Value { name, ty, constant: None, producer: None, uses: 0 });
        ValueId((self.values.len() - 1) as u32)
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, name: String, constant: Constant) -> ValueId {
        let ty = match &constant {
            Constant::Literal(literal) => literal.ty.clone(),
            Constant::Palettes(palettes) => palettes.ty(),
        };
        let id = self.value(name, ty);
        self.values[id.index()].constant = Some(constant);
        id
    }

    /// Adds a node behind all others and returns the value it produces.
    pub(crate) fn push(&mut self, name: String, kind: Kind, inputs: Vec<ValueId>, ty: TensorType) -> ValueId {
        let output = self.value(name.clone(), ty);
        self.retain(&inputs);
        self.values[output.index()].producer = Some(self.nodes.len());
        self.nodes.push(Some(Node { name, kind, inputs, output }));
        output
    }

    /// Makes `id` an output of the function.
    pub(crate) fn output(&mut self, id: ValueId) {
        self.retain(&[id]);
        self.outputs.push(id);
    }

    /// The value behind `id`.
    pub(crate) fn get(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The dimensions of a value.
    pub(crate) fn dims(&self, id: ValueId) -> &[usize] {
        &self.get(id).ty.shape
    }

    /// The live node that produces `id`.
    pub(crate) fn producer(&self, id: ValueId) -> Option<&Node> {
        self.nodes[self.get(id).producer?].as_ref()
    }

    /// The kind and inputs of the node that produces `id`.
    pub(crate) fn made_by(&self, id: ValueId) -> Option<(&Kind, &[ValueId])> {
        self.producer(id).map(|node| (&node.kind, node.inputs.as_slice()))
    }

    /// Whether one argument of one node is all that needs `id`, so that it may vanish into that node.
    pub(crate) fn is_private(&self, id: ValueId) -> bool {
        self.get(id).uses == 1
    }

    /// The number that `id` is, if it is a float constant of one element.
    pub(crate) fn number(&self, id: ValueId) -> Option<f32> {
        match &self.get(id).constant {
            Some(Constant::Literal(literal)) if literal.ty.shape.elements() == 1 => {
                literal.to_floats()?.first().copied()
            }
            _ => None,
        }
    }

    /// Whether `id` broadcasts over a tensor of `dims` with one element per index of `axis`.
    pub(crate) fn lies_along(&self, id: ValueId, axis: usize, dims: &[usize]) -> bool {
        let own = self.dims(id);
        let Some(missing) = dims.len().checked_sub(own.len()) else { return false };
        (missing..dims.len()).all(|other| own[other - missing] == if other == axis { dims[axis] } else { 1 })
            && (axis >= missing || dims[axis] == 1)
    }

    /// Puts another operation in the place of node `index`; its output and position stay.
    pub(crate) fn replace(&mut self, index: usize, kind: Kind, inputs: Vec<ValueId>) {
        self.retain(&inputs);
        let node = self.nodes[index].as_mut().expect("only live nodes are replaced");
        node.kind = kind;
        let before = std::mem::replace(&mut node.inputs, inputs);
        self.release(before);
    }

    /// Drops nodes whose results nobody uses.
    pub(crate) fn drop_dead(&mut self) {
        for index in (0..self.nodes.len()).rev() {
            let unused = |node: &mut Node| self.values[node.output.index()].uses == 0;
            if let Some(node) = self.nodes[index].take_if(unused) {
                self.release(node.inputs);
            }
        }
    }

    fn retain(&mut self, ids: &[ValueId]) {
        for id in ids {
            self.values[id.index()].uses += 1;
        }
    }

    /// Takes back uses, and drops the nodes that only led there.
    fn release(&mut self, mut ids: Vec<ValueId>) {
        while let Some(id) = ids.pop() {
            self.values[id.index()].uses -= 1;
            if self.get(id).uses == 0
                && let Some(node) = self.get(id).producer.and_then(|index| self.nodes[index].take())
            {
                ids.extend(node.inputs);
            }
        }
    }
}
