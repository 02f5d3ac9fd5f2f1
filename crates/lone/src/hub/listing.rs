//! What a revision holds: its commit, its files, and of each file the size and the ETag.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use super::client::Client;
use super::{HubError, RepoSpec};

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Files a conversion reads besides the weights, where a checkpoint has them.
const SMALL: [&str; 6] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
];

/// A commit and its files.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) commit: String,
    files: BTreeSet<String>,
}

/// A file, before it is fetched.
#[derive(Debug)]
pub(super) struct RemoteFile {
    /// Path in the repository.
    pub(super) name: String,
    /// Where its content is asked for.
    pub(super) url: String,
    /// Name of the blob: the SHA-256 of a large file's content, git's hash of a small one.
    pub(super) etag: String,
    /// Size.
    pub(super) bytes: u64,
}

#[derive(Deserialize)]
struct RevisionAnswer {
    sha: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

#[derive(Deserialize)]
struct IndexFile {
    weight_map: BTreeMap<String, String>,
}

impl Listing {
    /// Asks the hub which commit `repo`'s revision is and what it holds, at most `attempts` times.
    pub(super) fn request(client: &Client, repo: &RepoSpec, attempts: u32) -> Result<Self, HubError> {
        let path = format!("/api/models/{}/revision/{}", repo.id(), repo.revision.replace('/', "%2F"));
        let (url, text) = client.get_text(repo, &path, attempts)?;
        let protocol = |what: String| HubError::Protocol { url: url.clone(), what };
        let answer: RevisionAnswer =
            serde_json::from_str(&text).map_err(|error| protocol(error.to_string()))?;
        if answer.sha.len() != 40 || !answer.sha.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(protocol(format!("`{}` is not a commit", answer.sha)));
        }
        let listing = Listing {
            commit: answer.sha,
            files: answer.siblings.into_iter().map(|sibling| sibling.rfilename).collect(),
        };
        listing.require(repo)?;
        Ok(listing)
    }

    /// Refuses a repository that is no checkpoint before anything of it is fetched.
    fn require(&self, repo: &RepoSpec) -> Result<(), HubError> {
        let missing = |missing| Err(HubError::NotACheckpoint { repo: repo.clone(), missing });
        if !self.files.contains("config.json") {
            return missing("config.json");
        }
        if !self.files.contains(SINGLE) && !self.files.contains(INDEX) {
            return missing(SINGLE);
        }
        Ok(())
    }

    /// The files to fetch first, the index among them if the weights are sharded.
    pub(super) fn small_files(&self) -> Vec<String> {
        let index = (!self.files.contains(SINGLE)).then_some(INDEX);
        SMALL.into_iter().chain(index).filter(|name| self.files.contains(*name)).map(str::to_owned).collect()
    }

    /// The files of weights; `snapshot` has the index if there is one.
    pub(super) fn weight_files(&self, snapshot: &Path, repo: &RepoSpec) -> Result<Vec<String>, HubError> {
        if self.files.contains(SINGLE) {
            return Ok(vec![SINGLE.to_owned()]);
        }
        let path = snapshot.join(INDEX);
        let text = std::fs::read(&path).map_err(|source| HubError::Io { path: path.clone(), source })?;
        let shards = shards(&text).map_err(|error| HubError::Protocol {
            url: path.display().to_string(),
            what: error.to_string(),
        })?;
        match shards.iter().find(|shard| !self.files.contains(*shard)) {
            Some(shard) => Err(HubError::NoFile { repo: repo.clone(), file: shard.clone() }),
            None => Ok(shards),
        }
    }
}

impl RemoteFile {
    /// Asks for a file's size and ETag, without its content.
    pub(super) fn request(
        client: &Client,
        repo: &RepoSpec,
        commit: &str,
        name: &str,
    ) -> Result<Self, HubError> {
        let answer = client.head(repo, name, &format!("/{}/resolve/{commit}/{name}", repo.id()))?;
        let protocol = |what: &str| HubError::Protocol { url: answer.url.clone(), what: what.into() };
        let etag = answer.header("x-linked-etag").or_else(|| answer.header("etag"));
        let etag = etag.ok_or_else(|| protocol("no ETag"))?;
        let etag = etag.trim_start_matches("W/").trim_matches('"').to_owned();
        // It becomes a file name.
        if etag.is_empty() || !etag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(protocol("an ETag that is no hash"));
        }
        let bytes = answer.header("x-linked-size").or_else(|| answer.header("content-length"));
        let bytes = bytes.and_then(|bytes| bytes.parse().ok()).ok_or_else(|| protocol("no size"))?;
        Ok(RemoteFile { name: name.to_owned(), url: answer.url, etag, bytes })
    }
}

/// The files an index names: plain names of safetensors files, sorted, each once.
pub(super) fn shards(index: &[u8]) -> Result<Vec<String>, serde_json::Error> {
    use serde::de::Error as _;
    let index: IndexFile = serde_json::from_slice(index)?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    let foreign = |name: &&String| !name.ends_with(".safetensors") || name.contains(['/', '\\']);
    match names.iter().find(foreign) {
        Some(name) => Err(serde_json::Error::custom(format_args!("`{name}` is not the name of a shard"))),
        None => Ok(names.into_iter().collect()),
    }
}
