//! Checkpoints from the Hugging Face hub, kept where every other program of that family looks for them.
//!
//! ```text
//! HF_HUB_CACHE/models--org--name/
//!   refs/main                  a commit
//!   blobs/ETAG                 content; ETAG is the SHA-256 of large files
//!   blobs/ETAG.incomplete      what has arrived so far
//!   snapshots/COMMIT/FILE      links to blobs
//! ```
//! One call says which commit a revision is and which files it has; only the files a conversion reads are fetched.
//! What is already there is not asked for again.

mod cache;
mod client;
mod download;
mod error;
#[cfg(test)]
#[expect(unreachable_pub, reason = "tests of the whole program use the same file")]
#[path = "../tests/cli/fake_hub.rs"]
mod fake_hub;
mod listing;
mod repo;
mod settings;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use lone_lfm::Config;

use crate::interrupt::Interrupt;
use crate::ui::Ui;
use cache::RepoCache;
use client::Client;
pub(crate) use error::HubError;
use listing::{Listing, RemoteFile};
pub(crate) use repo::RepoSpec;
pub(crate) use settings::Settings;

/// A hub and the cache of what came from it.
pub(crate) struct Hub<'a> {
    settings: Settings,
    client: Client,
    interrupt: &'a Interrupt,
    ui: &'a Ui,
}

impl<'a> Hub<'a> {
    pub(crate) fn new(settings: Settings, interrupt: &'a Interrupt, ui: &'a Ui) -> Self {
        let client = Client::new(&settings, interrupt.clone());
        Hub { settings, client, interrupt, ui }
    }

    /// The local directory of `repo`'s checkpoint, fetched as far as it is not there yet.
    ///
    /// When the hub cannot be reached, a complete earlier download serves, with a warning.
    ///
    /// # Errors
    /// [`HubError`], naming the model, the file or the address.
    pub(crate) fn fetch(&self, repo: &RepoSpec) -> Result<PathBuf, HubError> {
        let cache = RepoCache::new(&self.settings.cache, repo);
        if let Some(dir) = cache.complete_commit(&repo.revision) {
            return Ok(dir);
        }
        let earlier = cache.complete_ref(&repo.revision);
        if self.settings.offline {
            return earlier.ok_or_else(|| HubError::Offline { repo: repo.clone() });
        }
        // Who has a copy to fall back on is not kept waiting.
        let attempts = if earlier.is_some() { 1 } else { client::ATTEMPTS };
        let listing = match (Listing::request(&self.client, repo, attempts), earlier) {
            (Ok(listing), _) => listing,
            (Err(error), Some(dir)) if error.is_transient() => {
                self.ui.warn(format_args!("{error}; using the copy downloaded earlier"));
                return Ok(dir);
            }
            (Err(error), _) => return Err(error),
        };
        cache.write_ref(&repo.revision, &listing.commit)?;
        if let Some(dir) = cache.complete_commit(&listing.commit) {
            return Ok(dir);
        }
        self.fetch_files(repo, &cache, &listing)
    }

    fn fetch_files(
        &self,
        repo: &RepoSpec,
        cache: &RepoCache,
        listing: &Listing,
    ) -> Result<PathBuf, HubError> {
        self.ui.note(format_args!("fetching {repo} from {}", self.settings.endpoint));
        // The small files come first: the index among them names the large ones.
        let small = self.describe(repo, listing, &listing.small_files())?;
        self.download(repo, cache, listing, &small)?;
        let snapshot = cache.snapshot(&listing.commit);
        // A model that lone does not know is refused before gigabytes of it are fetched.
        Config::open(&snapshot)?;
        let weights = listing.weight_files(&snapshot, repo)?;
        let weights = self.describe(repo, listing, &weights)?;
        self.download(repo, cache, listing, &weights)?;
        Ok(snapshot)
    }

    fn describe(
        &self,
        repo: &RepoSpec,
        listing: &Listing,
        names: &[String],
    ) -> Result<Vec<RemoteFile>, HubError> {
        names.iter().map(|name| RemoteFile::request(&self.client, repo, &listing.commit, name)).collect()
    }

    fn download(
        &self,
        repo: &RepoSpec,
        cache: &RepoCache,
        listing: &Listing,
        files: &[RemoteFile],
    ) -> Result<(), HubError> {
        let missing = files.iter().filter(|file| !cache.has_blob(&file.etag)).map(|file| file.bytes).sum();
        let mut progress = self.ui.progress(format!("fetching {}", repo.name), missing);
        for file in files {
            if !cache.has_blob(&file.etag) {
                let _lock = cache.lock_blob(&file.etag, self.interrupt, self.ui)?;
                // Whoever held the lock may just have fetched it.
                if !cache.has_blob(&file.etag) {
                    download::fetch(&self.client, file, &cache.blob(&file.etag), &mut progress)?;
                }
            }
            cache.link(&listing.commit, &file.name, &file.etag)?;
        }
        Ok(())
    }
}
