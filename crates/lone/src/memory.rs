//! How much memory this process holds, and how much there is left to have.

use serde::Serialize;
use sysinfo::{MemoryRefreshKind, ProcessRefreshKind, ProcessesToUpdate, System};

use crate::quantity::Bytes;

/// Memory at one moment; absent where the system does not tell.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Memory {
    /// Of this process, mapped weights that were touched included.
    rss_bytes: Option<u64>,
    /// What the system could give without swapping.
    free_bytes: Option<u64>,
}

impl Memory {
    /// As it is now.
    pub(crate) fn now() -> Self {
        let Ok(mut system) = System::new() else {
            return Memory { rss_bytes: None, free_bytes: None };
        };
        system.refresh_memory_specifics(MemoryRefreshKind::nothing().with_ram());
        let free = system.available_memory();
        let rss = sysinfo::get_current_pid().ok().and_then(|pid| {
            let kind = ProcessRefreshKind::nothing().with_memory().without_tasks();
            system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, kind);
            system.process(pid).map(sysinfo::Process::memory)
        });
        Memory {
            rss_bytes: rss.filter(|&bytes| bytes > 0),
            free_bytes: Some(free).filter(|&bytes| bytes > 0),
        }
    }

    /// As `590 MB rss · 3.10 GB free`; `None` where nothing is known.
    pub(crate) fn line(&self) -> Option<String> {
        let rss = self.rss_bytes.map(|bytes| format!("{} rss", Bytes(bytes)));
        let free = self.free_bytes.map(|bytes| format!("{} free", Bytes(bytes)));
        let parts: Vec<String> = rss.into_iter().chain(free).collect();
        (!parts.is_empty()).then(|| parts.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_holds_more_than_nothing_and_what_is_unknown_is_left_out() {
        let rss_bytes = Memory::now().rss_bytes.expect("this system tells");
        assert!(rss_bytes > 1 << 16, "{rss_bytes}");
        let both = Memory { rss_bytes: Some(590_000_000), free_bytes: Some(3_100_000_000) };
        assert_eq!(both.line().as_deref(), Some("590 MB rss · 3.10 GB free"));
        assert_eq!(Memory { rss_bytes: None, ..both }.line().as_deref(), Some("3.10 GB free"));
        assert_eq!(Memory { rss_bytes: None, free_bytes: None }.line(), None);
    }
}
