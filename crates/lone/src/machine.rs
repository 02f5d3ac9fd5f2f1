//! The machine this runs on, as reports name it.

use serde::Serialize;
use sysinfo::{CpuRefreshKind, MemoryRefreshKind, System};

/// A machine; what it does not tell is absent.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Machine {
    /// Such as `Apple M1`.
    pub(crate) chip: Option<String>,
    /// Such as `macOS 15.1 Sequoia`.
    pub(crate) system: Option<String>,
    pub(crate) memory_bytes: Option<u64>,
}

impl Machine {
    /// This one.
    pub(crate) fn this() -> Self {
        let system = System::long_os_version().ok();
        let Ok(mut machine) = System::new() else {
            return Machine { chip: None, system, memory_bytes: None };
        };
        machine.refresh_cpu_list(CpuRefreshKind::nothing());
        machine.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let chip = machine.cpus().first().map(|cpu| cpu.brand().trim().to_owned());
        Machine {
            chip: chip.filter(|chip| !chip.is_empty()),
            system,
            memory_bytes: Some(machine.total_memory()).filter(|&bytes| bytes > 0),
        }
    }

    /// As `Apple M1, macOS 15.1 Sequoia`.
    pub(crate) fn line(&self) -> String {
        let known: Vec<&str> = [&self.chip, &self.system].into_iter().flatten().map(String::as_str).collect();
        if known.is_empty() { "unknown machine".into() } else { known.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_called_by_what_it_tells() {
        let machine = Machine { chip: Some("Chip".into()), system: None, memory_bytes: None };
        assert_eq!(machine.line(), "Chip");
        assert_eq!(Machine { chip: None, ..machine }.line(), "unknown machine");
        assert!(Machine::this().memory_bytes.expect("this system tells") > 1 << 20);
    }
}
