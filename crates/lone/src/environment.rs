//! Environment variables: every one that lone reads, listed once.
//!
//! The process's environment is read here and nowhere else, so the list below is complete by construction. Help
//! texts and `docs/cli.md` show the same list, and a test compares them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A variable and what it is for.
pub(crate) struct Variable {
    pub(crate) name: &'static str,
    pub(crate) purpose: &'static str,
}

/// Every variable lone reads.
pub(crate) const VARIABLES: &[Variable] = &[
    Variable { name: "LONE_CACHE", purpose: "Directory for converted and unpacked models" },
    Variable {
        name: "LONE_BACKEND",
        purpose: "What `--backend auto` stands for; default coreml on macOS, cpu elsewhere",
    },
    Variable { name: "LONE_API_KEY", purpose: "Key that `serve` asks for" },
    Variable {
        name: "LONE_PYTHON",
        purpose: "Python with transformers, for `verify --reference hf`; default python3",
    },
    Variable {
        name: "LONE_POWERCAP",
        purpose: "Directory of energy counters; default /sys/class/powercap (not on macOS)",
    },
    Variable {
        name: "XDG_CACHE_HOME",
        purpose: "Where `lone/` is put when LONE_CACHE is not set (not on macOS)",
    },
    Variable {
        name: "XDG_STATE_HOME",
        purpose: "Where `lone/chat_history` is put; default ~/.local/state (not on macOS)",
    },
    Variable { name: "HOME", purpose: "Home directory, for caches, history and the hub's token" },
    Variable { name: "HF_HOME", purpose: "Directory of Hugging Face files; default ~/.cache/huggingface" },
    Variable { name: "HF_HUB_CACHE", purpose: "Directory of downloaded models; default HF_HOME/hub" },
    Variable { name: "HF_ENDPOINT", purpose: "Address of the hub; default https://huggingface.co" },
    Variable { name: "HF_TOKEN", purpose: "Access token for private and gated models" },
    Variable { name: "HF_TOKEN_PATH", purpose: "File with the access token; default HF_HOME/token" },
    Variable { name: "HF_HUB_OFFLINE", purpose: "1: use only what has been downloaded" },
    Variable { name: "NO_COLOR", purpose: "Any value: no colours" },
    Variable { name: "TERM", purpose: "`dumb`: no colours and no progress bars" },
];

/// The values of [`VARIABLES`], as they were when the process started. An empty value counts as not set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    values: BTreeMap<&'static str, OsString>,
}

impl Environment {
    /// Reads the process's environment.
    pub(crate) fn of_process() -> Self {
        let value = |variable: &Variable| Some((variable.name, std::env::var_os(variable.name)?));
        Environment { values: VARIABLES.iter().filter_map(value).collect() }
    }

    /// The value of a listed variable, if it is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        debug_assert!(VARIABLES.iter().any(|variable| variable.name == name), "{name} is not listed");
        self.values.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable that holds a path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// A variable that holds text; what is not UTF-8 counts as not set.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// A variable that switches something on: `1`, `true`, `yes` or `on`, in any case.
    pub(crate) fn switch(&self, name: &str) -> bool {
        self.text(name)
            .is_some_and(|text| ["1", "true", "yes", "on"].iter().any(|on| text.eq_ignore_ascii_case(on)))
    }

    /// Where converted and unpacked models are kept: `LONE_CACHE`, or the platform's cache directory.
    /// `None` if the system names no home directory.
    pub(crate) fn cache_dir(&self) -> Option<PathBuf> {
        if let Some(dir) = self.path("LONE_CACHE") {
            return Some(dir);
        }
        if cfg!(target_os = "macos") {
            return Some(self.path("HOME")?.join("Library/Caches/lone"));
        }
        // The XDG specification says that a relative path is to be ignored.
        let base = self.path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        Some(base.or_else(|| Some(self.path("HOME")?.join(".cache")))?.join("lone"))
    }

    /// Where what was typed is remembered: the platform's directory for it. `None` if the system names no home directory.
    pub(crate) fn state_dir(&self) -> Option<PathBuf> {
        if cfg!(target_os = "macos") {
            return Some(self.path("HOME")?.join("Library/Application Support/lone"));
        }
        let base = self.path("XDG_STATE_HOME").filter(|path| path.is_absolute());
        Some(base.or_else(|| Some(self.path("HOME")?.join(".local/state")))?.join("lone"))
    }

    /// `path` with the home directory for a `~` that it begins with, as a shell has it.
    pub(crate) fn expanded(&self, path: PathBuf) -> PathBuf {
        match (path.strip_prefix("~"), self.path("HOME")) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        }
    }

    /// An environment of exactly these variables.
    #[cfg(test)]
    pub(crate) fn with(values: &[(&'static str, &str)]) -> Self {
        Environment { values: values.iter().map(|(name, value)| (*name, value.into())).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_cache_wins_over_the_platforms_directory() {
        let environment =
            Environment::with(&[("LONE_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")]);
        assert_eq!(environment.cache_dir(), Some("/a".into()));
    }

    #[test]
    #[cfg(not(target_os = "macos"))]
    fn the_cache_is_under_xdg_cache_home_or_else_under_home() {
        let both = Environment::with(&[("XDG_CACHE_HOME", "/b"), ("HOME", "/c")]);
        assert_eq!(both.cache_dir(), Some("/b/lone".into()));
        let relative = Environment::with(&[("XDG_CACHE_HOME", "b"), ("HOME", "/c")]);
        assert_eq!(relative.cache_dir(), Some("/c/.cache/lone".into()));
        assert_eq!(Environment::default().cache_dir(), None);
    }

    #[test]
    #[cfg(not(target_os = "macos"))]
    fn state_is_under_xdg_state_home_or_else_under_home() {
        let both = Environment::with(&[("XDG_STATE_HOME", "/b"), ("HOME", "/c")]);
        assert_eq!(both.state_dir(), Some("/b/lone".into()));
        let home = Environment::with(&[("HOME", "/c")]);
        assert_eq!(home.state_dir(), Some("/c/.local/state/lone".into()));
    }

    #[test]
    fn an_empty_variable_counts_as_not_set() {
        assert_eq!(Environment::with(&[("HF_TOKEN", "")]).text("HF_TOKEN"), None);
    }

    #[test]
    fn a_switch_is_on_only_for_words_that_mean_yes() {
        for (value, on) in [("1", true), ("True", true), ("0", false), ("false", false), ("", false)] {
            assert_eq!(
                Environment::with(&[("HF_HUB_OFFLINE", value)]).switch("HF_HUB_OFFLINE"),
                on,
                "{value}"
            );
        }
    }
}
