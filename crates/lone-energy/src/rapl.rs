//! Linux: the energy counters of processors, as files.
//!
//! ```text
//! /sys/class/powercap/
//!   intel-rapl:0/name                  package-0
//!   intel-rapl:0/energy_uj             microjoules; only root may read it on most systems
//!   intel-rapl:0/max_energy_range_uj   where that begins anew
//!   intel-rapl:0:2/name                dram
//! ```
//! Zones inside a package other than its memory are part of the package's number and are left out, as is `psys`, which is
//! more than the processor. Counters begin anew after minutes of full load: who reads less often than that is told too little.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Counters, EnergyMeter, MeterError, Rail, RailCounter};

/// The meter.
#[derive(Debug)]
pub struct Rapl {
    zones: Vec<Zone>,
}

#[derive(Debug)]
struct Zone {
    rail: Rail,
    energy: PathBuf,
    /// Where the counter begins anew, microjoules; 0 where the system does not say.
    range: u64,
    /// The counter when it was last read.
    last: u64,
    /// Microjoules since the zone was opened.
    total: u64,
}

impl Rapl {
    /// Where Linux shows the counters.
    pub const ROOT: &'static str = "/sys/class/powercap";

    /// The zones below `root`.
    ///
    /// # Errors
    /// [`MeterError::Read`] if a counter may not be read, [`MeterError::NoZones`] if there are none.
    pub fn open(root: &Path) -> Result<Self, MeterError> {
        let none = || MeterError::NoZones { root: root.into() };
        let mut zones = Vec::new();
        for entry in fs::read_dir(root).map_err(|_| none())?.flatten() {
            if let Some(rail) = rail_of(root, &entry.file_name().to_string_lossy()) {
                zones.push(Zone::open(rail, &entry.path())?);
            }
        }
        zones.sort_by_key(|zone| zone.rail);
        if zones.is_empty() { Err(none()) } else { Ok(Rapl { zones }) }
    }
}

/// The rail of the zone called `entry`: `intel-rapl:N` is a package, `intel-rapl:N:M` a part of one.
fn rail_of(root: &Path, entry: &str) -> Option<Rail> {
    let numbers: Vec<&str> = entry.strip_prefix("intel-rapl:")?.split(':').collect();
    let name = fs::read_to_string(root.join(entry).join("name")).ok()?;
    let package = numbers.first()?.parse().ok()?;
    match (numbers.len(), name.trim()) {
        (1, name) if name.starts_with("package") => Some(Rail::Package(package)),
        (2, "dram") => Some(Rail::PackageDram(package)),
        _ => None,
    }
}

impl Zone {
    fn open(rail: Rail, dir: &Path) -> Result<Self, MeterError> {
        let energy = dir.join("energy_uj");
        let last = number(&energy)?;
        let range = number(&dir.join("max_energy_range_uj")).unwrap_or(0);
        Ok(Zone { rail, energy, range, last, total: 0 })
    }

    fn read(&mut self) -> Result<RailCounter, MeterError> {
        let now = number(&self.energy)?;
        let used = match now.checked_sub(self.last) {
            Some(used) => used,
            None => self.range.saturating_sub(self.last).saturating_add(now),
        };
        self.last = now;
        self.total = self.total.saturating_add(used);
        Ok(RailCounter { rail: self.rail, joules: self.total as f64 / 1e6 })
    }
}

fn number(path: &Path) -> Result<u64, MeterError> {
    let text = fs::read_to_string(path).map_err(|source| MeterError::Read { path: path.into(), source })?;
    let text = text.trim();
    text.parse().map_err(|_| MeterError::NotANumber { path: path.into(), found: text.into() })
}

impl EnergyMeter for Rapl {
    fn name(&self) -> &'static str {
        "RAPL"
    }

    fn read(&mut self) -> Result<Counters, MeterError> {
        let rails = self.zones.iter_mut().map(Zone::read).collect::<Result<_, _>>()?;
        Ok(Counters { rails, neural_engine: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(root: &Path, entry: &str, name: &str, energy: &str) {
        let dir = root.join(entry);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("name"), format!("{name}\n")).unwrap();
        fs::write(dir.join("energy_uj"), format!("{energy}\n")).unwrap();
        fs::write(dir.join("max_energy_range_uj"), "1000000\n").unwrap();
    }

    fn joules(rapl: &mut Rapl) -> Vec<(Rail, f64)> {
        rapl.read().unwrap().rails.iter().map(|counter| (counter.rail, counter.joules)).collect()
    }

    #[test]
    fn packages_and_their_memory_are_counted_and_what_is_inside_or_around_them_is_not() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        zone(root, "intel-rapl:1", "package-1", "500");
        zone(root, "intel-rapl:0", "package-0", "100");
        zone(root, "intel-rapl:0:0", "core", "50");
        zone(root, "intel-rapl:0:1", "dram", "10");
        zone(root, "intel-rapl:2", "psys", "9");
        zone(root, "dtpm", "package-0", "9");
        let mut rapl = Rapl::open(root).unwrap();
        zone(root, "intel-rapl:0", "package-0", "1000100");
        zone(root, "intel-rapl:0:1", "dram", "250010");
        let expected = [(Rail::Package(0), 1.0), (Rail::Package(1), 0.0), (Rail::PackageDram(0), 0.25)];
        assert_eq!(joules(&mut rapl), expected);
    }

    #[test]
    fn a_counter_that_begins_anew_goes_on_counting() {
        let root = tempfile::tempdir().unwrap();
        zone(root.path(), "intel-rapl:0", "package-0", "900000");
        let mut rapl = Rapl::open(root.path()).unwrap();
        zone(root.path(), "intel-rapl:0", "package-0", "100000");
        assert_eq!(joules(&mut rapl), [(Rail::Package(0), 0.2)]);
        zone(root.path(), "intel-rapl:0", "package-0", "200000");
        assert!((joules(&mut rapl)[0].1 - 0.3).abs() < 1e-12);
    }

    #[test]
    fn a_system_without_zones_and_one_that_keeps_them_to_itself_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert!(matches!(Rapl::open(&root.join("absent")), Err(MeterError::NoZones { .. })));
        assert!(matches!(Rapl::open(root), Err(MeterError::NoZones { .. })));
        zone(root, "intel-rapl:0", "package-0", "secret");
        assert!(matches!(Rapl::open(root), Err(MeterError::NotANumber { .. })));
        fs::remove_file(root.join("intel-rapl:0/energy_uj")).unwrap();
        assert!(matches!(Rapl::open(root), Err(MeterError::Read { .. })));
    }
}
