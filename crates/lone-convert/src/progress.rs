//! How far a conversion is, and whether it should go on.

/// The parts of a conversion that take time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Reading all weights once: ranges and the source's hash.
    Survey,
    /// Measuring what palettes cost, to choose among them.
    Choose,
    /// Fitting palettes to text, and writing the bundle.
    Fit,
    /// Writing the bundle.
    Write,
}

/// Told of every block; decides nothing but whether to go on.
pub trait Progress {
    /// A phase begins that goes through `bytes`.
    fn begin(&mut self, phase: Phase, bytes: u64);

    /// So many bytes more are done.
    fn advance(&mut self, bytes: u64);

    /// Asked once a block; `true` ends the conversion with [`ConvertError::Cancelled`](crate::ConvertError).
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// No one is watching.
impl Progress for () {
    fn begin(&mut self, _: Phase, _: u64) {}

    fn advance(&mut self, _: u64) {}
}
