//! Requests to the hub: one place for the token, redirects, statuses and further attempts.
//!
//! Redirects are followed here and not by the HTTP library, because the token goes to the hub's own authority
//! (host and port) and to nobody else; large files live elsewhere.

use std::time::Duration;

use ureq::http::{self, Uri};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body};

use super::{HubError, RepoSpec, Settings};
use crate::interrupt::Interrupt;

/// How often a request is made before its failure counts.
pub(super) const ATTEMPTS: u32 = 5;
const MOST_REDIRECTS: usize = 8;
const MOST_TEXT_BYTES: u64 = 64 << 20;

/// Speaks with one hub.
pub(super) struct Client {
    agent: Agent,
    endpoint: String,
    token: Option<String>,
    first_pause: Duration,
    pub(super) interrupt: Interrupt,
}

/// An answer, and where it came from.
#[derive(Debug)]
pub(super) struct Answer {
    /// The address that was asked for first.
    pub(super) url: String,
    pub(super) response: http::Response<Body>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Head,
    Get,
}

impl Answer {
    /// A header, if it is there and readable.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }
}

impl Client {
    pub(super) fn new(settings: &Settings, interrupt: Interrupt) -> Self {
        let config = Agent::config_builder()
            .tls_config(tls())
            .user_agent(concat!("lone/", env!("CARGO_PKG_VERSION")))
            // Sizes must be those of the files, and a file must arrive as it is.
            .accept_encoding("identity")
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(Duration::from_secs(10)))
            .timeout_recv_response(Some(Duration::from_secs(30)))
            .timeout_per_read(Some(Duration::from_secs(30)))
            .build();
        Client {
            agent: config.into(),
            endpoint: settings.endpoint.clone(),
            token: settings.token.clone(),
            first_pause: settings.first_pause,
            interrupt,
        }
    }

    /// The text at `path` of the hub, and its address.
    pub(super) fn get_text(
        &self,
        repo: &RepoSpec,
        path: &str,
        attempts: u32,
    ) -> Result<(String, String), HubError> {
        let url = format!("{}{path}", self.endpoint);
        self.persist(attempts, "the list of files", || {
            let mut answer = self.send(Method::Get, &url, None, Redirects::All)?;
            self.check_status(&answer, repo, None)?;
            let body = answer.response.body_mut().with_config().limit(MOST_TEXT_BYTES);
            let text =
                body.read_to_string().map_err(|source| HubError::Network { url: url.clone(), source })?;
            Ok((url.clone(), text))
        })
    }

    /// The headers of the file at `path` of the hub: of the first answer that is not the hub sending us on within
    /// itself, because that one has the hash and the size.
    pub(super) fn head(&self, repo: &RepoSpec, file: &str, path: &str) -> Result<Answer, HubError> {
        let url = format!("{}{path}", self.endpoint);
        self.persist(ATTEMPTS, file, || {
            let answer = self.send(Method::Head, &url, None, Redirects::WithinTheHub)?;
            self.check_status(&answer, repo, Some(file))?;
            Ok(answer)
        })
    }

    /// The content at `url` from byte `from` on. The answer may begin at 0 all the same: see its status.
    pub(super) fn get_from(&self, url: &str, from: u64) -> Result<Answer, HubError> {
        let range = (from > 0).then(|| format!("bytes={from}-"));
        let answer = self.send(Method::Get, url, range.as_deref(), Redirects::All)?;
        match answer.response.status().as_u16() {
            200 | 206 | 416 => Ok(answer),
            status => Err(HubError::Status { url: url.to_owned(), status }),
        }
    }

    /// Calls `attempt` until it succeeds, fails for good, or has failed `attempts` times.
    fn persist<T>(
        &self,
        attempts: u32,
        file: &str,
        attempt: impl Fn() -> Result<T, HubError>,
    ) -> Result<T, HubError> {
        let mut failures = 0;
        loop {
            match attempt() {
                Err(error) if error.is_transient() && failures + 1 < attempts => {
                    failures += 1;
                    self.pause_after(failures, error, file)?;
                }
                outcome => return outcome,
            }
        }
    }

    /// Waits before the next attempt, longer each time; after the last one, returns its error.
    pub(super) fn pause_after(&self, failures: u32, error: HubError, file: &str) -> Result<(), HubError> {
        if failures >= ATTEMPTS {
            return Err(error);
        }
        if !self.interrupt.sleep(self.first_pause * 2_u32.pow(failures - 1)) {
            return Err(HubError::Interrupted { file: file.to_owned() });
        }
        Ok(())
    }

    fn send(
        &self,
        method: Method,
        url: &str,
        range: Option<&str>,
        follow: Redirects,
    ) -> Result<Answer, HubError> {
        let protocol = |what: String| HubError::Protocol { url: url.to_owned(), what };
        let mut target: Uri = url.parse().map_err(|error| protocol(format!("{error}")))?;
        for _ in 0..=MOST_REDIRECTS {
            let response = self.send_once(method, &target, range)?;
            let answer = Answer { url: url.to_owned(), response };
            let Some(location) = answer.redirect().map(str::to_owned) else { return Ok(answer) };
            let next =
                resolve(&target, &location).ok_or_else(|| protocol(format!("redirect to `{location}`")))?;
            if follow == Redirects::WithinTheHub && !self.is_hub(&next) {
                return Ok(answer);
            }
            target = next;
        }
        Err(protocol(format!("more than {MOST_REDIRECTS} redirects")))
    }

    fn send_once(
        &self,
        method: Method,
        target: &Uri,
        range: Option<&str>,
    ) -> Result<http::Response<Body>, HubError> {
        let mut request = match method {
            Method::Head => self.agent.head(target.clone()),
            Method::Get => self.agent.get(target.clone()),
        };
        if let Some(token) = self.token.as_ref().filter(|_| self.is_hub(target)) {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if let Some(range) = range {
            request = request.header("range", range);
        }
        // The query of a redirect is somebody's signature, and no part of an error message.
        let shown = || target.to_string().split('?').next().unwrap_or_default().to_owned();
        request.call().map_err(|source| HubError::Network { url: shown(), source })
    }

    fn is_hub(&self, target: &Uri) -> bool {
        let Ok(hub) = self.endpoint.parse::<Uri>() else { return false };
        hub.scheme() == target.scheme() && hub.authority() == target.authority()
    }

    fn check_status(&self, answer: &Answer, repo: &RepoSpec, file: Option<&str>) -> Result<(), HubError> {
        let (repo, endpoint) = (repo.clone(), self.endpoint.clone());
        let status = answer.response.status().as_u16();
        Err(match (status, answer.header("x-error-code")) {
            (200..=399, _) => return Ok(()),
            (401 | 403, Some("GatedRepo")) | (403, _) => HubError::Gated { repo, endpoint },
            (401, _) => HubError::Unauthorized { repo, endpoint, with_token: self.token.is_some() },
            (404, Some("RevisionNotFound")) => HubError::NoRevision { repo },
            (404, _) => match file {
                Some(file) => HubError::NoFile { repo, file: file.to_owned() },
                None => HubError::NoModel { repo, endpoint },
            },
            _ => HubError::Status { url: answer.url.clone(), status },
        })
    }
}

/// The system's TLS and certificates on macOS, rustls with Mozilla's elsewhere, as Cargo.toml has it.
fn tls() -> TlsConfig {
    let tls = TlsConfig::builder();
    if cfg!(target_os = "macos") {
        tls.provider(TlsProvider::NativeTls).root_certs(RootCerts::PlatformVerifier).build()
    } else {
        tls.build()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Redirects {
    All,
    WithinTheHub,
}

impl Answer {
    fn redirect(&self) -> Option<&str> {
        matches!(self.response.status().as_u16(), 301 | 302 | 303 | 307 | 308)
            .then(|| self.header("location"))
            .flatten()
    }
}

/// Where `location` leads from `base`: an absolute address or an absolute path. Encryption is never given up.
fn resolve(base: &Uri, location: &str) -> Option<Uri> {
    let next: Uri = if location.starts_with('/') && !location.starts_with("//") {
        format!("{}://{}{location}", base.scheme_str()?, base.authority()?).parse().ok()?
    } else {
        location.parse().ok()?
    };
    match (base.scheme_str(), next.scheme_str()) {
        (_, Some("https")) | (Some("http"), Some("http")) => Some(next),
        _ => None,
    }
}
