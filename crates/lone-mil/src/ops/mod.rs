//! One row per operation: name, parameters with their type domains, type rule, meaning.

/// One operation of MIL.
#[derive(Debug)]
pub struct OpSpec {
    /// The MIL name, verbatim.
    pub name: &'static str,
    /// Parameters, in the order of [`crate::Op::args`].
    pub params: &'static [Param],
}

/// One parameter of an operation.
#[derive(Debug)]
pub struct Param {
    /// The MIL name.
    pub name: &'static str,
}
