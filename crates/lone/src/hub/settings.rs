//! Where the hub is, who asks, and where its files are kept: the environment's say, resolved.

use std::path::PathBuf;
use std::time::Duration;

use crate::environment::Environment;
use crate::failure::UserError;

const DEFAULT_ENDPOINT: &str = "https://huggingface.co";

/// How to reach the hub and where to keep its files.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Scheme and authority, perhaps a path; no `/` at the end.
    pub(crate) endpoint: String,
    /// Sent to the endpoint and to nobody else.
    pub(crate) token: Option<String>,
    /// The directory that holds `models--org--name`.
    pub(crate) cache: PathBuf,
    /// Ask nobody.
    pub(crate) offline: bool,
    /// Before the second attempt; each further pause is twice as long.
    pub(crate) first_pause: Duration,
}

impl Settings {
    /// Reads `HF_*` as the hub's own library does.
    ///
    /// # Errors
    /// If there is no place for a cache, or a variable's value cannot be used.
    pub(crate) fn resolve(environment: &Environment) -> Result<Self, UserError> {
        let home = environment.path("HF_HOME").or_else(|| Some(cache_home(environment)?.join("huggingface")));
        let cache = environment.path("HF_HUB_CACHE").or_else(|| Some(home.as_ref()?.join("hub")));
        let cache = cache.ok_or_else(|| {
            UserError::new("no place for downloads: the environment names no home directory")
                .with_hint("set HF_HOME to a directory")
        })?;
        let endpoint = environment.text("HF_ENDPOINT").unwrap_or(DEFAULT_ENDPOINT).trim_end_matches('/');
        if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
            return Err(UserError::new(format_args!("HF_ENDPOINT is `{endpoint}`, not an http(s) address"))
                .with_hint(format_args!("HF_ENDPOINT={DEFAULT_ENDPOINT}")));
        }
        let token_file = environment.path("HF_TOKEN_PATH").or_else(|| Some(home?.join("token")));
        let from_file = || std::fs::read_to_string(token_file?).ok();
        let token = environment.text("HF_TOKEN").map(str::to_owned).or_else(from_file);
        Ok(Settings {
            endpoint: endpoint.to_owned(),
            token: usable_token(token)?,
            cache,
            offline: environment.switch("HF_HUB_OFFLINE"),
            first_pause: Duration::from_secs(1),
        })
    }
}

fn cache_home(environment: &Environment) -> Option<PathBuf> {
    environment.path("XDG_CACHE_HOME").or_else(|| Some(environment.path("HOME")?.join(".cache")))
}

fn usable_token(token: Option<String>) -> Result<Option<String>, UserError> {
    let token = token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    match token {
        Some(token) if !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Err(UserError::new("the hub's access token holds characters that no token has")
                .with_hint("set HF_TOKEN to the token alone"))
        }
        token => Ok(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(values: &[(&'static str, &str)]) -> Settings {
        Settings::resolve(&Environment::with(values)).unwrap()
    }

    #[test]
    fn the_cache_is_where_the_hubs_own_library_keeps_it() {
        let cache = |values: &[(&'static str, &str)]| resolve(values).cache;
        assert_eq!(cache(&[("HOME", "/h")]), PathBuf::from("/h/.cache/huggingface/hub"));
        assert_eq!(cache(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), PathBuf::from("/x/huggingface/hub"));
        assert_eq!(cache(&[("HOME", "/h"), ("HF_HOME", "/f")]), PathBuf::from("/f/hub"));
        assert_eq!(cache(&[("HF_HOME", "/f"), ("HF_HUB_CACHE", "/c")]), PathBuf::from("/c"));
    }

    #[test]
    fn a_token_comes_from_the_variable_or_else_from_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().to_str().unwrap();
        assert_eq!(resolve(&[("HF_HOME", home)]).token, None);
        std::fs::write(dir.path().join("token"), "hf_file\n").unwrap();
        assert_eq!(resolve(&[("HF_HOME", home)]).token.as_deref(), Some("hf_file"));
        assert_eq!(resolve(&[("HF_HOME", home), ("HF_TOKEN", "hf_env")]).token.as_deref(), Some("hf_env"));
    }

    #[test]
    fn values_that_cannot_work_are_refused() {
        for (name, value) in [("HF_ENDPOINT", "huggingface.co"), ("HF_TOKEN", "two\nlines")] {
            let environment = Environment::with(&[("HOME", "/h"), (name, value)]);
            assert!(Settings::resolve(&environment).is_err(), "{name}");
        }
    }
}
