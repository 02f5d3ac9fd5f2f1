//! How many threads are worth having: one per physical core that this process may use.
//!
//! Reading weights saturates memory long before it saturates two hardware threads of one core, so siblings
//! only get in each other's way.

use std::collections::HashSet;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

/// The number of physical cores this process may run on: what `--threads` is when nobody says otherwise.
///
/// Linux tells which hardware threads share a core; elsewhere every one counts. An affinity mask or a cgroup
/// quota lowers the number.
pub fn physical_cores() -> NonZeroUsize {
    let available = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let cores = count_cores(Path::new("/sys/devices/system/cpu")).and_then(NonZeroUsize::new);
    cores.map_or(available, |cores| cores.min(available))
}

/// The number of different sibling lists below `cpus`, a directory laid out like `/sys/devices/system/cpu`.
fn count_cores(cpus: &Path) -> Option<usize> {
    let siblings =
        |entry: fs::DirEntry| fs::read_to_string(entry.path().join("topology/thread_siblings_list")).ok();
    let lists: HashSet<String> = fs::read_dir(cpus).ok()?.flatten().filter_map(siblings).collect();
    Some(lists.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_count_as_one_core() {
        let root = std::env::temp_dir().join(format!("lone-cpu-cores-{}", std::process::id()));
        for (cpu, siblings) in [("cpu0", "0,2\n"), ("cpu1", "1,3\n"), ("cpu2", "0,2\n"), ("cpu3", "1,3\n")] {
            let topology = root.join(cpu).join("topology");
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("thread_siblings_list"), siblings).unwrap();
        }
        fs::create_dir_all(root.join("cpufreq")).unwrap();
        let counted = count_cores(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(counted, Some(2));
    }

    #[test]
    fn a_machine_that_does_not_say_counts_hardware_threads() {
        assert_eq!(count_cores(Path::new("/nonexistent")), None);
        assert!(physical_cores() <= thread::available_parallelism().unwrap());
    }
}
