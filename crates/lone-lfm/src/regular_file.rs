//! Reading files of a checkpoint whole: regular ones only, since reading a pipe waits for whoever writes to it.

use std::io;
use std::path::Path;

/// The bytes of the regular file at `path`.
///
/// # Errors
/// As the operating system says; `InvalidInput` for anything but a regular file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    check(path)?;
    std::fs::read(path)
}

/// The text of the regular file at `path`.
///
/// # Errors
/// As [`read`], and `InvalidData` for what is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    check(path)?;
    std::fs::read_to_string(path)
}

/// Asked before opening, since opening a pipe waits too.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    if path.metadata()?.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_and_what_is_not_there_is_not_found() {
        let dir = tempfile::tempdir().unwrap();
        let kind = |path: &Path| (read(path).unwrap_err().kind(), read_to_string(path).unwrap_err().kind());
        assert_eq!(kind(dir.path()), (io::ErrorKind::InvalidInput, io::ErrorKind::InvalidInput));
        let missing = dir.path().join("missing");
        assert_eq!(kind(&missing), (io::ErrorKind::NotFound, io::ErrorKind::NotFound));
        std::fs::write(&missing, "text").unwrap();
        assert_eq!(
            (read(&missing).unwrap(), read_to_string(&missing).unwrap()),
            (b"text".to_vec(), "text".into())
        );
    }
}
