//! A server in this process, on a port of its own, and a client for it.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use lone_bundle::Bundle;
use lone_convert::{ConvertOptions, convert};
use lone_cpu::{CpuBackend, CpuOptions};
use lone_engine::{LoadOptions, Runtime, Scheduler, SchedulerOptions};
use lone_lfm::{Checkpoint, Tokenizer};
use lone_serve::{ServeOptions, ServedModel, Server, serve};
use serde_json::Value;
use tempfile::TempDir;

/// Context of the models served.
pub const CTX: usize = 512;

/// A server that runs until it is dropped.
pub struct Host {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// A checkpoint that travels with the sources.
pub fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

fn bundle(checkpoint: &Path) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let options = ConvertOptions {
        ctx: vec![CTX],
        prefill: vec![32],
        spec_drafts: Some(8),
        ..ConvertOptions::default()
    };
    convert(&Checkpoint::open(checkpoint).unwrap(), &dir.path().join("bundle"), &options, &mut ()).unwrap();
    dir
}

/// The model's bundle, converted once.
fn shared_bundle(name: &str) -> PathBuf {
    static LFM2: LazyLock<TempDir> = LazyLock::new(|| bundle(&model("tiny-lfm2")));
    static LFM3: LazyLock<TempDir> = LazyLock::new(|| bundle(&model("tiny-lfm3")));
    let dir = if name == "tiny-lfm2" { &*LFM2 } else { &*LFM3 };
    dir.path().join("bundle")
}

impl Host {
    /// tiny-lfm3 with default settings.
    pub fn new() -> Self {
        Host::with("tiny-lfm3", SchedulerOptions::default(), ServeOptions::default())
    }

    pub fn with(name: &str, scheduling: SchedulerOptions, options: ServeOptions) -> Self {
        Host::of(&shared_bundle(name), name, scheduling, options)
    }

    /// tiny-lfm3 with another chat template, served as `alias`.
    pub fn templated(template: &str, alias: &str) -> Self {
        let checkpoint = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(model("tiny-lfm3")).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), checkpoint.path().join(entry.file_name())).unwrap();
        }
        std::fs::write(checkpoint.path().join("chat_template.jinja"), template).unwrap();
        let dir = bundle(checkpoint.path());
        Host::of(&dir.path().join("bundle"), alias, SchedulerOptions::default(), ServeOptions::default())
    }

    fn of(dir: &Path, name: &str, scheduling: SchedulerOptions, options: ServeOptions) -> Self {
        let backend = CpuBackend::new(CpuOptions { threads: NonZeroUsize::new(1), ..CpuOptions::default() });
        let runtime = Runtime::load(dir, &backend, &LoadOptions::default()).unwrap();
        let tokenizer = Arc::new(Tokenizer::open(dir).unwrap());
        let bundle = Bundle::open(dir).unwrap();
        let names = vec![name.to_owned()];
        let model = ServedModel::open(dir, &bundle, tokenizer.clone(), names, CTX).unwrap();
        let scheduler = Scheduler::start(runtime, Some(tokenizer), &scheduling).unwrap();
        let server = Server::new(model, scheduler, scheduling.parallel, options);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopping = {
            let stop = Arc::clone(&stop);
            move || stop.load(Ordering::SeqCst)
        };
        let thread = std::thread::spawn(move || serve(listener, server, is_stopping).unwrap());
        Host { address, stop, thread: Some(thread) }
    }

    /// Asks the server to stop, and waits until it has.
    pub fn stop(&mut self) {
        self.ask_to_stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_text(path, &[("content-type", "application/json")], &body.to_string())
    }

    pub fn post_text(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut request = agent().post(self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request.send(body).unwrap())
    }

    pub fn get(&self, path: &str) -> Reply {
        self.get_with(path, &[])
    }

    pub fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        let mut request = agent().get(self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request.call().unwrap())
    }

    /// The events of a stream, each as JSON; the last one's `[DONE]` is a string.
    pub fn stream(&self, path: &str, body: &Value) -> Vec<Value> {
        let request = agent().post(self.url(path)).header("content-type", "application/json");
        let response = request.send(body.to_string()).unwrap();
        assert_eq!(response.status(), 200);
        let lines = BufReader::new(response.into_body().into_reader()).lines().map(Result::unwrap);
        let data = lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
        data.map(|data| serde_json::from_str(&data).unwrap_or(Value::String(data))).collect()
    }

    /// A chat completion, which must succeed.
    pub fn chat(&self, body: &Value) -> Value {
        self.post("/v1/chat/completions", body).json(200)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Reply {
    /// The body, of a reply of this status.
    pub fn json(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The field that a refusal names.
    pub fn refused(&self) -> String {
        let body = self.json(400);
        assert_eq!(body["error"]["type"], "invalid_request_error");
        body["error"]["param"].as_str().unwrap_or_default().to_owned()
    }
}

fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    config.timeout_global(Some(Duration::from_secs(120))).build().into()
}

fn reply(mut response: ureq::http::Response<ureq::Body>) -> Reply {
    let text = |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    Reply { status: response.status().as_u16(), headers, body: response.body_mut().read_to_string().unwrap() }
}
