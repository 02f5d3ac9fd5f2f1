//! `--model`: what was typed, and the checkpoint directory it stands for.

use std::path::{Path, PathBuf};

use crate::commands::Context;
use crate::demo;
use crate::failure::{Failure, UserError};
use crate::hub::{Hub, RepoSpec, Settings};

/// What `--model` can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ModelSource {
    /// A directory on this machine.
    Directory(PathBuf),
    /// A repository on the hub.
    Hub(RepoSpec),
    /// The model this program carries.
    Demo,
}

/// A checkpoint on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointDir {
    /// Where it is.
    pub(crate) dir: PathBuf,
    /// What to call the model.
    pub(crate) name: String,
}

impl ModelSource {
    /// Resolves `typed`. `demo` is the built-in model; a directory that exists wins over a repository of its name.
    ///
    /// # Errors
    /// If it is none of the three, or a directory that is no checkpoint.
    pub(crate) fn resolve(typed: &str) -> Result<Self, UserError> {
        let source = Self::named(typed)?;
        if let ModelSource::Directory(dir) = &source {
            check_checkpoint(dir)?;
        }
        Ok(source)
    }

    fn named(typed: &str) -> Result<Self, UserError> {
        let path = Path::new(typed);
        if typed == demo::NAME {
            return Ok(ModelSource::Demo);
        }
        if path.is_dir() {
            return Ok(ModelSource::Directory(path.into()));
        }
        if path.exists() {
            return Err(UserError::new(format_args!("{typed} is a file; a checkpoint is a directory"))
                .with_hint(format_args!("--model {}", parent_of(path).display())));
        }
        typed.parse().map(ModelSource::Hub).map_err(|()| {
            UserError::new(format_args!("there is no directory {typed}"))
                .with_hint("a model on the Hugging Face hub is written org/name; `demo` is built in")
        })
    }

    /// The checkpoint's directory, after fetching or unpacking it if need be.
    ///
    /// # Errors
    /// As the hub or the cache has it.
    pub(crate) fn checkpoint(&self, context: &Context) -> Result<CheckpointDir, Failure> {
        match self {
            ModelSource::Directory(dir) => Ok(CheckpointDir { dir: dir.clone(), name: name_of(dir) }),
            ModelSource::Hub(repo) => {
                let settings = Settings::resolve(&context.environment)?;
                let dir = Hub::new(settings, &context.interrupt, &context.ui).fetch(repo)?;
                Ok(CheckpointDir { dir, name: repo.name.clone() })
            }
            ModelSource::Demo => {
                let dir = demo::unpack(&context.cache_dir()?)?;
                Ok(CheckpointDir { dir, name: demo::MODEL_NAME.into() })
            }
        }
    }
}

/// Refuses a directory that cannot be a checkpoint, with what it is instead.
fn check_checkpoint(dir: &Path) -> Result<(), UserError> {
    let shown = dir.display();
    if dir.join("config.json").is_file() {
        return Ok(());
    }
    Err(if dir.join(lone_bundle::FILE_NAME).is_file() {
        UserError::new(format_args!("{shown} is a bundle, not a checkpoint"))
            .with_hint(format_args!("--bundle {shown}"))
    } else {
        UserError::new(format_args!("{shown} is not a checkpoint: it has no config.json"))
    })
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The directory's own name, even when it was given as `.`.
fn name_of(dir: &Path) -> String {
    let absolute = dir.canonicalize();
    let name = absolute.as_deref().unwrap_or(dir).file_name();
    name.map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_exists_wins_over_a_repository_of_its_name() {
        assert_eq!(ModelSource::named("src/hub"), Ok(ModelSource::Directory("src/hub".into())));
        assert_eq!(ModelSource::named("src/bug"), Ok(ModelSource::Hub("src/bug".parse().unwrap())));
    }

    #[test]
    fn demo_is_the_built_in_model() {
        assert_eq!(ModelSource::resolve("demo"), Ok(ModelSource::Demo));
    }

    #[test]
    fn a_file_or_nothing_at_all_is_refused_with_what_was_probably_meant() {
        let error = ModelSource::resolve("src/main.rs").unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("--model src"));
        let error = ModelSource::resolve("./nothing").unwrap_err();
        assert_eq!(error.message, "there is no directory ./nothing");
    }

    #[test]
    fn a_directory_that_is_no_checkpoint_is_refused_with_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let typed = dir.path().to_str().unwrap();
        let error = ModelSource::resolve(typed).unwrap_err();
        assert!(error.message.ends_with("has no config.json"), "{}", error.message);
        std::fs::write(dir.path().join("bundle.json"), "{}").unwrap();
        assert_eq!(ModelSource::resolve(typed).unwrap_err().hint, Some(format!("--bundle {typed}")));
    }

    #[test]
    fn a_model_is_called_after_its_directory_however_it_is_reached() {
        assert_eq!(name_of(Path::new("src/..")), "lone");
    }
}
