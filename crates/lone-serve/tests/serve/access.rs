//! Who may come in, and how much they may bring.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use lone_serve::ServeOptions;
use serde_json::json;

use crate::host::Host;

fn with(options: ServeOptions) -> Host {
    Host::with("tiny-lfm3", Default::default(), options)
}

#[test]
fn a_key_is_asked_for_wherever_the_model_is() {
    let host = with(ServeOptions { api_keys: vec!["secret".into()], ..ServeOptions::default() });
    for path in ["/v1/models", "/metrics", "/props", "/nowhere"] {
        let reply = host.get(path);
        assert!(matches!(reply.status, 401 | 404), "{path}: {}", reply.status);
    }
    let refusal = host.get("/v1/models").json(401);
    assert_eq!(refusal["error"]["code"], "invalid_api_key");
    assert!(!refusal.to_string().contains("secret"));
    assert_eq!(host.post("/v1/completions", &json!({"prompt": "x"})).status, 401);
    assert_eq!(host.get_with("/v1/models", &[("authorization", "Bearer wrong")]).status, 401);
    assert_eq!(host.get_with("/v1/models", &[("authorization", "Bearer secret")]).status, 200);
    for path in ["/", "/health", "/openapi.json"] {
        assert_eq!(host.get(path).status, 200, "{path}");
    }
}

#[test]
fn only_named_origins_may_read_answers() {
    let host =
        with(ServeOptions { cors_origins: vec!["https://a.example".into()], ..ServeOptions::default() });
    let allowed = |origin| {
        let reply = host.get_with("/v1/models", &[("origin", origin)]);
        reply.header("access-control-allow-origin").map(str::to_owned)
    };
    assert_eq!(allowed("https://a.example").as_deref(), Some("https://a.example"));
    assert_eq!(allowed("https://b.example"), None);
    let closed = Host::new().get_with("/v1/models", &[("origin", "https://a.example")]);
    assert_eq!(closed.header("access-control-allow-origin"), None);
}

#[test]
fn a_body_that_is_too_large_is_refused_before_and_after_it_is_read() {
    let host = with(ServeOptions { most_body_bytes: 1000, ..ServeOptions::default() });
    let body = json!({"prompt": "x".repeat(2000)}).to_string();
    assert_eq!(host.post_text("/v1/completions", &[("content-type", "application/json")], &body).status, 413);
    let mut stream = TcpStream::connect(host.address).unwrap();
    let head = "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    write!(stream, "{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).unwrap();
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"HTTP/1.1 413");
}

#[test]
fn slow_heads_and_slow_bodies_are_not_waited_for() {
    let second = Duration::from_millis(300);
    let host = with(ServeOptions { idle_timeout: second, body_timeout: second, ..ServeOptions::default() });
    let mut silent = TcpStream::connect(host.address).unwrap();
    silent.write_all(b"POST /v1/comple").unwrap();
    let mut rest = Vec::new();
    silent.read_to_end(&mut rest).unwrap();
    let mut slow = TcpStream::connect(host.address).unwrap();
    let head = "POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{";
    slow.write_all(head.as_bytes()).unwrap();
    let mut reply = [0; 12];
    slow.read_exact(&mut reply).unwrap();
    assert_eq!(&reply, b"HTTP/1.1 408");
}

#[test]
fn every_reply_carries_the_requests_name() {
    let host = Host::new();
    assert_eq!(
        host.get_with("/health", &[("x-request-id", "mine-1")]).header("x-request-id"),
        Some("mine-1")
    );
    let (a, b) = (host.get("/health"), host.get("/nowhere"));
    let (a, b) = (a.header("x-request-id").unwrap(), b.header("x-request-id"));
    assert!(a.starts_with("req_") && b != Some(a), "{a} {b:?}");
}

#[test]
fn addresses_and_methods_that_are_not_there_are_refused_in_openais_shape() {
    let host = Host::new();
    assert_eq!(host.get("/nowhere").json(404)["error"]["type"], "invalid_request_error");
    assert_eq!(host.get("/v1/models/%ff").json(404)["error"]["type"], "invalid_request_error");
    assert_eq!(host.get("/v1/chat/completions").json(405)["error"]["type"], "invalid_request_error");
}
