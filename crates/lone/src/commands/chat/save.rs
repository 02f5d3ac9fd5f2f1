//! Conversations in files.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read};
use std::path::Path;

use lone_engine::{Dialogue, Runtime, Session, SessionOptions};

use crate::failure::{Failure, UserError};

/// What a file of ours begins with.
const BEGINNING: &[u8] = b"lone session";

/// Writes the conversation to `path`, all of it or nothing. Only a file that is a conversation is replaced.
pub(super) fn save(
    path: &Path,
    runtime: &Runtime,
    session: &Session,
    dialogue: &Dialogue,
) -> Result<(), Failure> {
    if !may_replace(path).map_err(|error| cannot("read", path, &error))? {
        return Err(UserError::new(format_args!("{} is there and is no conversation", path.display()))
            .with_hint("/save another file")
            .into());
    }
    let write = || -> io::Result<()> {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        // Where there is no directory, the reason should not name a temporary file.
        fs::metadata(directory)?;
        let file = tempfile::NamedTempFile::new_in(directory)?;
        session.save(runtime, dialogue, BufWriter::new(file.as_file()))?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(|error| cannot("write", path, &error).into())
}

/// Reads a conversation.
pub(super) fn load(
    path: &Path,
    runtime: &Runtime,
    options: &SessionOptions,
) -> Result<(Session, Dialogue), Failure> {
    let file = File::open(path).map_err(|error| cannot("read", path, &error))?;
    let loaded = runtime.load_session(options, BufReader::new(file));
    loaded.map_err(|error| Failure::user(format_args!("cannot load {}: {error}", path.display())))
}

fn may_replace(path: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(BEGINNING.len() as u64).read_to_end(&mut beginning)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(beginning == BEGINNING)
}

fn cannot(act: &str, path: &Path, error: &io::Error) -> UserError {
    UserError::new(format_args!("cannot {act} {}: {error}", path.display()))
}
