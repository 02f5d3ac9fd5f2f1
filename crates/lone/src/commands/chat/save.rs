//! Conversations in files.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read};
use std::path::{Path, PathBuf};

use lone_engine::{Dialogue, Runtime, SavedError, Session, SessionOptions};

use super::unfinished::Unfinished;
use crate::failure::{Failure, UserError};

/// What a file of ours begins with.
const BEGINNING: &[u8] = b"lone session";

/// Links that are followed from one to the next.
const MOST_LINKS: usize = 40;

/// Writes the conversation to `path`, or to what it is a link to, all of it or nothing. Only a file that is a
/// conversation is replaced.
pub(super) fn save(
    path: &Path,
    runtime: &Runtime,
    session: &Session,
    dialogue: &Dialogue,
) -> Result<(), Failure> {
    let target = followed(path);
    if !may_replace(&target).map_err(|error| cannot("write", path, &error))? {
        return Err(UserError::new(format_args!("{} is there and is no conversation", path.display()))
            .with_hint("/save another file")
            .into());
    }
    let write = || -> io::Result<()> {
        let unfinished = Unfinished::beside(&target, is_begun)?;
        session.save(runtime, dialogue, BufWriter::new(unfinished.file()))?;
        unfinished.finish(&target)
    };
    write().map_err(|error| cannot("write", path, &error).into())
}

/// Reads a conversation.
pub(super) fn load(
    path: &Path,
    runtime: &Runtime,
    options: &SessionOptions,
) -> Result<(Session, Dialogue), Failure> {
    let file = open(path).map_err(|error| cannot("read", path, &error))?;
    runtime.load_session(options, BufReader::new(file)).map_err(|error| {
        let message = UserError::new(format_args!("cannot load {}: {error}", path.display()));
        match error {
            SavedError::OtherShapes { .. } => message.with_hint("lone chat with these flags, or that bundle"),
            _ => message,
        }
        .into()
    })
}

/// What a chain of links leads to, there or not.
fn followed(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(link) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(link);
    }
    target
}

fn may_replace(path: &Path) -> io::Result<bool> {
    let mut beginning = Vec::new();
    match open(path) {
        Ok(file) => file.take(BEGINNING.len() as u64).read_to_end(&mut beginning)?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(beginning == BEGINNING)
}

/// Whether the file at `path` is the beginning of a conversation, as far as it goes.
fn is_begun(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = open(path).and_then(|file| file.take(BEGINNING.len() as u64).read_to_end(&mut beginning));
    read.is_ok() && BEGINNING.starts_with(&beginning)
}

/// Opens a regular file: opening a pipe would wait for its other end.
fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() { File::open(path) } else { Err(io::Error::other("not a regular file")) }
}

fn cannot(act: &str, path: &Path, error: &io::Error) -> UserError {
    UserError::new(format_args!("cannot {act} {}: {error}", path.display()))
}
