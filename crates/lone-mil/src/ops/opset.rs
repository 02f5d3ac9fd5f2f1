//! The versions of the set of operations.

/// A version of MIL's operations; each goes with one specification version of the model format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Opset {
    /// iOS 15, macOS 12: specification version 6.
    CoreML5,
    /// iOS 16, macOS 13: specification version 7.
    CoreML6,
    /// iOS 17, macOS 14: specification version 8.
    CoreML7,
    /// iOS 18, macOS 15: specification version 9.
    CoreML8,
    /// iOS 26, macOS 26: specification version 10.
    CoreML9,
}

impl Opset {
    const ALL: [Opset; 5] = [Opset::CoreML5, Opset::CoreML6, Opset::CoreML7, Opset::CoreML8, Opset::CoreML9];

    /// The name in programs, such as `CoreML8`.
    pub fn name(self) -> &'static str {
        ["CoreML5", "CoreML6", "CoreML7", "CoreML8", "CoreML9"][self as usize]
    }

    /// The opset of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Opset::ALL.into_iter().find(|opset| opset.name() == name)
    }

    /// The specification version it came with.
    pub fn specification_version(self) -> i32 {
        self as i32 + 6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_opsets() {
        for opset in Opset::ALL {
            assert_eq!(Opset::from_name(opset.name()), Some(opset));
        }
        assert_eq!(Opset::from_name("CoreML8").map(Opset::specification_version), Some(9));
        assert_eq!(Opset::from_name("CoreML4"), None);
    }
}
