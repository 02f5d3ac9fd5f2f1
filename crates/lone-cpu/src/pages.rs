//! What pages memory is in, and how far ahead of a read to ask for more in it.

/// What pages memory is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// Those that files are mapped in.
    Usual,
    /// The largest the system gives to those who ask.
    Huge,
}

impl Pages {
    /// `usual` or `huge`.
    pub fn name(self) -> &'static str {
        match self {
            Pages::Usual => "usual",
            Pages::Huge => "huge",
        }
    }

    /// How many bytes ahead of what is read to ask for more: far enough for what the CPU's own prefetching leaves out,
    /// which is what lies behind the end of a page.
    ///
    /// Usual pages: one page. To ask across an end holds up all that follows until the page's address is translated,
    /// which takes long on virtual machines, and longer if the page is far.
    pub(crate) const fn prefetch_distance(self) -> usize {
        match self {
            Pages::Usual => 4 << 10,
            Pages::Huge => 8 << 10,
        }
    }
}
