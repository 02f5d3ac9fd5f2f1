//! The parts of a system whose energy is counted.

use std::fmt;

/// A part of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rail {
    /// The Neural Engine.
    NeuralEngine,
    /// The cores of the CPU.
    Cpu,
    /// The GPU.
    Gpu,
    /// Memory.
    Dram,
    /// A processor as a whole, by its number.
    Package(u32),
    /// Memory of the processor of this number.
    PackageDram(u32),
}

impl fmt::Display for Rail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rail::NeuralEngine => f.write_str("ane"),
            Rail::Cpu => f.write_str("cpu"),
            Rail::Gpu => f.write_str("gpu"),
            Rail::Dram => f.write_str("dram"),
            Rail::Package(number) => write!(f, "package-{number}"),
            Rail::PackageDram(number) => write!(f, "dram-{number}"),
        }
    }
}

/// The rail that a channel of IOReport's group `Energy Model` counts, if it is one of those shown: totals, not single cores. A Mac
/// with two dies counts each.
#[cfg(any(target_os = "macos", test))]
pub(crate) fn of_channel(name: &str) -> Option<Rail> {
    if name.ends_with("CPU Energy") {
        Some(Rail::Cpu)
    } else if name.ends_with("GPU Energy") {
        Some(Rail::Gpu)
    } else if name.starts_with("ANE") {
        Some(Rail::NeuralEngine)
    } else if name.starts_with("DRAM") {
        Some(Rail::Dram)
    } else {
        None
    }
}

/// Which way the Neural Engine's bytes went.
#[cfg(any(target_os = "macos", test))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Written,
}

/// The direction that a channel of IOReport's group `AMC Stats` counts for the Neural Engine, at the memory controller. The fabric counts
/// the same bytes once more, in channels such as `ANE0 NRT AF RD`.
#[cfg(any(target_os = "macos", test))]
pub(crate) fn traffic_of_channel(name: &str) -> Option<Direction> {
    match name.strip_prefix("ANE")?.trim_start_matches(|c: char| c.is_ascii_digit()) {
        " DCS RD" => Some(Direction::Read),
        " DCS WR" => Some(Direction::Written),
        _ => None,
    }
}

/// Joules in a unit that IOReport names.
#[cfg(any(target_os = "macos", test))]
pub(crate) fn joules_in(unit: &str) -> Option<f64> {
    match unit.trim() {
        "mJ" => Some(1e-3),
        "uJ" => Some(1e-6),
        "nJ" => Some(1e-9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_sorted_to_rails_and_single_cores_are_left_out() {
        let table = [
            ("CPU Energy", Some(Rail::Cpu)),
            ("DIE_1_CPU Energy", Some(Rail::Cpu)),
            ("GPU Energy", Some(Rail::Gpu)),
            ("ANE", Some(Rail::NeuralEngine)),
            ("ANE0", Some(Rail::NeuralEngine)),
            ("DRAM", Some(Rail::Dram)),
            ("PACC0_CPU3", None),
            ("GPU SRAM", None),
        ];
        for (channel, rail) in table {
            assert_eq!(of_channel(channel), rail, "{channel}");
        }
    }

    #[test]
    fn traffic_is_counted_once_where_it_meets_memory() {
        let table = [
            ("ANE DCS RD", Some(Direction::Read)),
            ("ANE0 DCS WR", Some(Direction::Written)),
            ("ANE NRT AF RD", None),
            ("ANE0 RT AF WR", None),
            ("GFX DCS RD", None),
            ("ANEX DCS RD", None),
        ];
        for (channel, direction) in table {
            assert_eq!(traffic_of_channel(channel), direction, "{channel}");
        }
    }

    #[test]
    fn units_are_read_with_the_spaces_around_them_and_unknown_ones_are_not_guessed() {
        assert_eq!(joules_in("mJ "), Some(1e-3));
        assert_eq!(joules_in("nJ"), Some(1e-9));
        assert_eq!(joules_in("events"), None);
    }
}
