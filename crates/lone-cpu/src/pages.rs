//! What pages memory is in, and how far ahead of a read to ask for more in it.

use std::io;

use memmap2::MmapMut;

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

/// New memory in `pages`, all zeros.
///
/// # Errors
/// As the operating system says when it has none left.
pub(crate) fn map(bytes: usize, pages: Pages) -> io::Result<MmapMut> {
    let map = MmapMut::map_anon(bytes)?;
    advise(&map, pages);
    Ok(map)
}

/// A kernel that knows no such pages leaves things as they are.
#[cfg(target_os = "linux")]
fn advise(map: &MmapMut, pages: Pages) {
    let advice = match pages {
        Pages::Usual => memmap2::Advice::NoHugePage,
        Pages::Huge => memmap2::Advice::HugePage,
    };
    map.advise(advice).ok();
}

#[cfg(not(target_os = "linux"))]
fn advise(_map: &MmapMut, _pages: Pages) {}
