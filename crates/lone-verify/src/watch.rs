//! Whoever waits for long work.

/// Follows long work, and may end it.
pub trait Watch {
    /// This many more tokens have been read.
    fn advance(&mut self, tokens: usize) {
        let _ = tokens;
    }

    /// Whether to stop; asked between passes, or layers.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// No one is watching.
impl Watch for () {}
