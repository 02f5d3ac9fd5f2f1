//! `org/name@revision`: which checkpoint on the hub.

use std::fmt;
use std::str::FromStr;

/// A model repository and a revision of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepoSpec {
    /// Who publishes it.
    pub(crate) org: String,
    /// What it is called.
    pub(crate) name: String,
    /// A branch, a tag or a commit.
    pub(crate) revision: String,
}

/// The revision that is meant when none is named.
const DEFAULT_REVISION: &str = "main";

impl RepoSpec {
    /// `org/name`, as in the hub's addresses.
    pub(crate) fn id(&self) -> String {
        format!("{}/{}", self.org, self.name)
    }
}

impl fmt::Display for RepoSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.org, self.name)?;
        if self.revision == DEFAULT_REVISION { Ok(()) } else { write!(f, "@{}", self.revision) }
    }
}

impl FromStr for RepoSpec {
    type Err = ();

    /// Names are as the hub allows them: letters, digits, `-`, `_` and `.`, no `--`, no `..`, none at the ends.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (id, revision) = text.split_once('@').unwrap_or((text, DEFAULT_REVISION));
        let (org, name) = id.split_once('/').ok_or(())?;
        if ![org, name].into_iter().all(is_name) || !is_revision(revision) {
            return Err(());
        }
        Ok(RepoSpec { org: org.into(), name: name.into(), revision: revision.into() })
    }
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let at_end = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=96).contains(&text.len())
        && text.chars().all(allowed)
        && text.starts_with(at_end)
        && text.ends_with(at_end)
        && !text.contains("--")
        && !text.contains("..")
}

/// A revision becomes a path below `refs/`, so no part of it may lead elsewhere.
fn is_revision(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '+');
    text.chars().all(allowed) && text.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_an_org_and_a_name_and_perhaps_a_revision() {
        let spec: RepoSpec = "LiquidAI/LFM2-1.2B".parse().unwrap();
        assert_eq!((spec.org.as_str(), spec.name.as_str()), ("LiquidAI", "LFM2-1.2B"));
        assert_eq!(spec.to_string(), "LiquidAI/LFM2-1.2B");
        let spec: RepoSpec = "a/b@refs/pr/1".parse().unwrap();
        assert_eq!((spec.revision.as_str(), spec.to_string().as_str()), ("refs/pr/1", "a/b@refs/pr/1"));
    }

    #[test]
    fn what_could_leave_the_cache_or_the_url_is_no_repository() {
        for text in
            ["a", "a/b/c", "../b", "a/..", "/a/b", "a/b@../../x", "a/b@", "a--b/c", "a b/c", "a/b?x", "a/.b"]
        {
            assert!(text.parse::<RepoSpec>().is_err(), "{text}");
        }
    }
}
