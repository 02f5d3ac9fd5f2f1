//! A server on loopback that plays the Hugging Face hub, and another that plays the place large files live at.
//!
//! It answers what the real ones answer (the revision call, `resolve` with its redirects and ETags, ranges) and
//! misbehaves on request. Every request is recorded, so that a test can tell who was told what.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// How the servers misbehave; the default is not at all.
#[derive(Debug, Clone, Default)]
pub struct Behaviour {
    /// Requests to the hub without this token get 401.
    pub token: Option<String>,
    /// The revision call gets this status and `X-Error-Code`.
    pub refuse: Option<(u16, &'static str)>,
    /// That many answers of content end after `cut_at` bytes.
    pub cuts: usize,
    pub cut_at: usize,
    /// That many answers of anything are 503.
    pub outages: usize,
    /// Ranges are ignored: always the whole file.
    pub no_ranges: bool,
    /// One byte of each large file is another.
    pub corrupt: bool,
}

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Request {
    pub to_hub: bool,
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
}

pub struct FakeHub {
    pub endpoint: String,
    shared: Arc<Shared>,
}

struct Shared {
    repo: String,
    files: BTreeMap<String, Vec<u8>>,
    store: String,
    behaviour: Mutex<Behaviour>,
    requests: Mutex<Vec<Request>>,
}

impl FakeHub {
    /// Serves `files` (name, content) as `repo`.
    pub fn start(repo: &str, files: Vec<(String, Vec<u8>)>) -> Self {
        let hub = TcpListener::bind("127.0.0.1:0").unwrap();
        let store = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            repo: repo.into(),
            files: files.into_iter().collect(),
            store: address(&store),
            behaviour: Mutex::default(),
            requests: Mutex::default(),
        });
        let endpoint = address(&hub);
        for (listener, to_hub) in [(hub, true), (store, false)] {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                for stream in listener.incoming() {
                    let shared = Arc::clone(&shared);
                    // A client that hangs up is part of the tests.
                    std::thread::spawn(move || shared.answer(stream.unwrap(), to_hub).ok());
                }
            });
        }
        FakeHub { endpoint, shared }
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock().unwrap() = behaviour;
    }

    /// What was asked since the last call.
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }
}

impl Shared {
    fn answer(&self, stream: TcpStream, to_hub: bool) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream.try_clone()?);
        let Some(request) = read_request(&mut reader, to_hub)? else { return Ok(()) };
        self.requests.lock().unwrap().push(request.clone());
        let mut reply = Reply { stream, head_only: request.method == "HEAD" };
        let behaviour = self.next_behaviour(&request);
        if behaviour.outages > 0 {
            return reply.send(503, &[], b"");
        }
        if !to_hub {
            let name =
                request.path.trim_start_matches("/store/").split('?').next().unwrap_or_default().to_owned();
            return self.send_content(&mut reply, &request, &behaviour, &name);
        }
        let bearer = behaviour.token.as_ref().map(|token| format!("Bearer {token}"));
        if bearer.is_some() && bearer.as_ref() != request.headers.get("authorization") {
            return reply.send(401, &[("X-Error-Code", "RepoNotFound".into())], b"");
        }
        let api = format!("/api/models/{}/revision/", self.repo);
        if request.path.strip_prefix(&api).is_some() {
            return self.send_listing(&mut reply, &behaviour);
        }
        match request.path.strip_prefix(&format!("/{}/resolve/{COMMIT}/", self.repo)) {
            Some(name) => self.resolve(&mut reply, &request, &behaviour, name),
            None => reply.send(404, &[("X-Error-Code", "RepoNotFound".into())], b""),
        }
    }

    /// The behaviour for this request; counted misbehaviours are used up.
    fn next_behaviour(&self, request: &Request) -> Behaviour {
        let mut behaviour = self.behaviour.lock().unwrap();
        let now = behaviour.clone();
        behaviour.outages = behaviour.outages.saturating_sub(1);
        if !request.to_hub {
            behaviour.cuts = behaviour.cuts.saturating_sub(1);
        }
        now
    }

    fn send_listing(&self, reply: &mut Reply, behaviour: &Behaviour) -> std::io::Result<()> {
        if let Some((status, code)) = behaviour.refuse {
            return reply.send(status, &[("X-Error-Code", code.into())], b"");
        }
        let siblings: Vec<String> =
            self.files.keys().map(|name| format!(r#"{{"rfilename":"{name}"}}"#)).collect();
        let body = format!(r#"{{"sha":"{COMMIT}","siblings":[{}]}}"#, siblings.join(","));
        reply.send(200, &[], body.as_bytes())
    }

    /// Large files: a redirect to the store, with the hash. Small ones: a redirect within the hub, as the real one
    /// has it, then the content.
    fn resolve(
        &self,
        reply: &mut Reply,
        request: &Request,
        behaviour: &Behaviour,
        name: &str,
    ) -> std::io::Result<()> {
        let (name, cached) = name.split_once('?').map_or((name, false), |(name, _)| (name, true));
        let Some(content) = self.files.get(name) else {
            return reply.send(404, &[("X-Error-Code", "EntryNotFound".into())], b"");
        };
        let commit = ("X-Repo-Commit", COMMIT.to_owned());
        if name.ends_with(".safetensors") {
            let location = ("Location", format!("{}/store/{name}?signature=secret", self.store));
            let etag = ("X-Linked-Etag", format!("\"{}\"", sha256(content)));
            let size = ("X-Linked-Size", content.len().to_string());
            return reply.send(302, &[commit, location, etag, size], b"");
        }
        if !cached {
            let location = ("Location", format!("{}?cached", request.path));
            return reply.send(307, &[commit, location], b"");
        }
        self.send_content(reply, request, behaviour, name)
    }

    fn send_content(
        &self,
        reply: &mut Reply,
        request: &Request,
        behaviour: &Behaviour,
        name: &str,
    ) -> std::io::Result<()> {
        let mut content = self.files[name].clone();
        let etag = ("ETag", format!("W/\"{}\"", &sha256(&content)[..40]));
        if behaviour.corrupt && !request.to_hub {
            content[0] ^= 1;
        }
        let range = request.headers.get("range").filter(|_| !behaviour.no_ranges);
        let from = range.map_or(0, |range| range["bytes=".len()..].trim_end_matches('-').parse().unwrap());
        if from > 0 && from >= content.len() {
            return reply.send(416, &[], b"");
        }
        let status = if from > 0 { 206 } else { 200 };
        let span = ("Content-Range", format!("bytes {from}-{}/{}", content.len() - 1, content.len()));
        let rest = &content[from..];
        if behaviour.cuts > 0 && !request.to_hub && rest.len() > behaviour.cut_at {
            return reply.send_part(status, &[etag, span], rest, behaviour.cut_at);
        }
        reply.send(status, &[etag, span], rest)
    }
}

struct Reply {
    stream: TcpStream,
    head_only: bool,
}

impl Reply {
    fn send(&mut self, status: u16, headers: &[(&str, String)], body: &[u8]) -> std::io::Result<()> {
        self.send_part(status, headers, body, body.len())
    }

    /// Announces all of `body` and sends its first `count` bytes.
    fn send_part(
        &mut self,
        status: u16,
        headers: &[(&str, String)],
        body: &[u8],
        count: usize,
    ) -> std::io::Result<()> {
        let mut head =
            format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        self.stream.write_all(format!("{head}\r\n").as_bytes())?;
        if !self.head_only {
            self.stream.write_all(&body[..count])?;
        }
        self.stream.flush()
    }
}

fn read_request(reader: &mut impl BufRead, to_hub: bool) -> std::io::Result<Option<Request>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let (method, path) = (method.to_owned(), path.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            return Ok(Some(Request { to_hub, method, path, headers }));
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
}

pub fn sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}
