//! Whose fault a library's error is, and what to do about it.

use std::error::Error;
use std::io;

use lone_bundle::BundleError;
use lone_convert::ConvertError;
use lone_coreml::CoremlError;
use lone_engine::{DialogueError, EngineError, LoadError, RequestError, RunError};
use lone_lfm::{ChatError, CheckpointError, TokenizerError};
use lone_mil::BackendError;
use lone_mil::package::PackageError;
use lone_verify::{ExamError, RecordError, TransformersError, VerifyError};

use super::{Failure, UserError};
use crate::args::MOST_CONTEXT;
use crate::bundle::REMEDY;

/// `error` and what caused it, in one line. Causes that the message already ends with are not repeated.
fn chain(error: &dyn Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.ends_with(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

/// Whether a file could not be read for reasons that lie outside of it.
fn is_refused_by_the_system(error: &(dyn Error + 'static)) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let refused = matches!(kind, Some(io::ErrorKind::PermissionDenied | io::ErrorKind::OutOfMemory));
    refused || error.source().is_some_and(is_refused_by_the_system)
}

/// What to do where Core ML refuses a package that is as it should be.
fn about_core_ml(error: &BackendError) -> Option<&'static str> {
    let BackendError::Package(refusal) = error else { return None };
    match refusal.downcast_ref()? {
        CoremlError::Package(_) => None,
        CoremlError::Io { .. } => {
            Some("set LONE_CACHE to a directory that can be written, with room for what Core ML compiles")
        }
        _ => Some("try other --compute-units, or --backend cpu; `lone doctor` tells what works here"),
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        let hint = match &error {
            BundleError::NotABundle { .. } => {
                Some("make one with `lone convert`, or give a checkpoint with --model")
            }
            BundleError::MissingFile { .. } | BundleError::FileSize { .. } | BundleError::FileHash { .. } => {
                Some(REMEDY)
            }
            _ => None,
        };
        Failure::User(UserError { message: chain(&error), hint: hint.map(str::to_owned) })
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        let hint = match &error {
            CheckpointError::NoWeights { .. } => {
                Some("lone reads safetensors checkpoints, not GGUF or other formats")
            }
            CheckpointError::Damaged { .. } => Some("copy or download the file again"),
            _ => None,
        };
        Failure::User(UserError { message: chain(&error), hint: hint.map(str::to_owned) })
    }
}

impl From<PackageError> for Failure {
    fn from(error: PackageError) -> Self {
        Failure::user(chain(&error))
    }
}

impl From<ConvertError> for Failure {
    fn from(error: ConvertError) -> Self {
        let hint = match &error {
            ConvertError::Cancelled => return Failure::Interrupted("nothing was written".into()),
            ConvertError::Option { .. } | ConvertError::Conflict { .. } => {
                return Failure::Usage(UserError::new(chain(&error)));
            }
            error if error.is_internal() => return Failure::internal(chain(error)),
            ConvertError::Exists { .. } => Some("--force"),
            ConvertError::NotReplaceable { .. } => Some("give --out the name of a directory to make"),
            ConvertError::NoSpace { .. } => Some("free some space, or choose a directory on a larger disk"),
            ConvertError::Range { .. } => {
                Some("the checkpoint is damaged, or needs more range than fp16 has")
            }
            _ => None,
        };
        Failure::User(UserError { message: chain(&error), hint: hint.map(str::to_owned) })
    }
}

impl From<TokenizerError> for Failure {
    fn from(error: TokenizerError) -> Self {
        Failure::user(chain(&error))
    }
}

impl From<ChatError> for Failure {
    fn from(error: ChatError) -> Self {
        Failure::user(chain(&error))
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Bundle(error) => error.into(),
            LoadError::Memory(error) => error.into(),
            error if is_refused_by_the_system(&error) => Failure::user(chain(&error)),
            error => {
                let hint = match &error {
                    LoadError::Backend { source, .. } => about_core_ml(source),
                    _ => None,
                };
                let usual =
                    "find out what has changed with `lone inspect --check`, or convert the checkpoint again";
                UserError::new(chain(&error)).with_hint(hint.unwrap_or(usual)).into()
            }
        }
    }
}

impl From<RequestError> for Failure {
    fn from(error: RequestError) -> Self {
        let hint = match &error {
            RequestError::PromptTooLong { tokens, .. } if *tokens <= MOST_CONTEXT => {
                Some(format!("convert with --ctx {} or more", tokens.next_power_of_two()))
            }
            RequestError::OverBudget { .. } => {
                Some("a larger --kv-budget, or a bundle converted with a shorter --ctx too".to_owned())
            }
            RequestError::NoVerify => Some("convert with --spec-drafts 16".to_owned()),
            RequestError::PromptTooLong { .. } => {
                Some(format!("shorten the prompt: no context is longer than {MOST_CONTEXT}"))
            }
            _ => None,
        };
        Failure::User(UserError { message: error.to_string(), hint })
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match &error {
            RunError::Wire { .. } => UserError::new(chain(&error))
                .with_hint("raise the limit on locked memory, `ulimit -l`, or leave --wire-caches out")
                .into(),
            RunError::Memory { .. } => {
                UserError::new(chain(&error)).with_hint("convert with a smaller --ctx").into()
            }
            // The arithmetic is tested; what is left is what it was given.
            RunError::Logits { .. } => {
                UserError::new(format_args!("{error}: its weights are damaged or overflow fp16"))
                    .with_hint("`lone inspect --bundle DIR --check` tells whether its files are as written")
                    .into()
            }
            RunError::Backend { source, .. } => match about_core_ml(source) {
                // A function that is loaded when it is first needed.
                Some(hint) => UserError::new(chain(&error)).with_hint(hint).into(),
                None => Failure::internal(chain(&error)),
            },
            RunError::Grammar(_) => Failure::internal(chain(&error)),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Request(error) => error.into(),
            EngineError::Run(error) => error.into(),
        }
    }
}

impl From<DialogueError> for Failure {
    fn from(error: DialogueError) -> Self {
        match error {
            DialogueError::Chat(error) => error.into(),
            DialogueError::Tokenizer(error) => error.into(),
        }
    }
}

/// What became of a comparison that was cancelled.
fn nothing_compared() -> Failure {
    Failure::Interrupted("nothing was compared".into())
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::Cancelled => nothing_compared(),
            error => Failure::user(chain(&error)),
        }
    }
}

impl From<TransformersError> for Failure {
    fn from(error: TransformersError) -> Self {
        let hint = match &error {
            TransformersError::Missing { .. } | TransformersError::Start { .. } => {
                "set LONE_PYTHON to a Python with torch and transformers, or leave --reference out"
            }
            TransformersError::Record(RecordError::Cancelled) => return nothing_compared(),
            _ => return Failure::user(chain(&error)),
        };
        UserError::new(chain(&error)).with_hint(hint).into()
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::Engine(error) => error.into(),
            VerifyError::Record(error) => error.into(),
            VerifyError::Cancelled => nothing_compared(),
        }
    }
}

impl From<ExamError> for Failure {
    fn from(error: ExamError) -> Self {
        match error {
            ExamError::Engine(error) => error.into(),
            ExamError::Tokenizer(error) => error.into(),
            ExamError::Chat(error) => error.into(),
            ExamError::Question { number, task, source } => match Failure::from(*source) {
                Failure::User(UserError { message, hint }) => {
                    let message = format!("question {number}, of task `{task}`: {message}");
                    Failure::User(UserError { message, hint })
                }
                failure => failure,
            },
            ExamError::Cancelled => Failure::Interrupted("the exam is not over".into()),
            error => Failure::user(chain(&error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Outer {
        text: &'static str,
        source: io::Error,
    }

    #[test]
    fn no_context_longer_than_the_longest_is_recommended() {
        let hint = |tokens| match Failure::from(RequestError::PromptTooLong { tokens, ctx: 64 }) {
            Failure::User(error) => error.hint.unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(hint(65), "convert with --ctx 128 or more");
        assert_eq!(hint(MOST_CONTEXT), "convert with --ctx 1048576 or more");
        assert!(!hint(MOST_CONTEXT + 1).contains("--ctx"));
    }

    #[test]
    fn what_core_ml_refuses_is_not_blamed_on_the_bundle_nor_on_lone() {
        let refused = || {
            let refusal = CoremlError::Load {
                package: "a.mlpackage".into(),
                function: "decode".into(),
                fault: lone_coreml::Fault("no engine".into()),
            };
            BackendError::from(refusal)
        };
        let package = || "a.mlpackage".to_owned();
        let damaged = BackendError::Package("a record is cut short".into());
        for (failure, hint) in [
            (
                LoadError::Backend { package: package(), source: refused() }.into(),
                "try other --compute-units",
            ),
            (RunError::Backend { package: package(), source: refused() }.into(), "try other --compute-units"),
            (LoadError::Backend { package: package(), source: damaged }.into(), "find out what has changed"),
        ] {
            let Failure::User(UserError { message, hint: Some(found) }) = failure else {
                panic!("{failure:?}")
            };
            assert!(found.starts_with(hint), "{message}: {found}");
        }
    }

    #[test]
    fn a_cause_is_told_once() {
        let cause = || io::Error::other("disk on fire");
        let quiet = Outer { text: "cannot read x", source: cause() };
        assert_eq!(chain(&quiet), "cannot read x: disk on fire");
        let telling = Outer { text: "cannot read x: disk on fire", source: cause() };
        assert_eq!(chain(&telling), "cannot read x: disk on fire");
    }
}
