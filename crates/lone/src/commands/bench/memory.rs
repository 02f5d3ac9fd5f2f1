//! What this process takes up.

/// Bytes of memory that belong to this process alone; `None` where the system does not say.
pub(super) fn private_bytes() -> Option<u64> {
    field(&std::fs::read_to_string("/proc/self/status").ok()?, "RssAnon:")
}

/// A field of `/proc/self/status`, which counts in kibibytes.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_by_its_name_and_counted_in_bytes() {
        let status = "Name:\tlone\nVmRSS:\t 300 kB\nRssAnon:\t     120 kB\n";
        assert_eq!(field(status, "RssAnon:"), Some(120 * 1024));
        assert_eq!(field(status, "RssShmem:"), None);
    }
}
