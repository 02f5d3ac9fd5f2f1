//! `lone serve`: how it begins, what it logs, how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::machine::{Machine, model};

/// A server and the address it says it is at.
pub fn start(machine: &Machine, flags: &[&str]) -> (Child, String) {
    let mut child = machine
        .process()
        .args(["serve", "--model", "demo", "--port", "0"])
        .args(flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("serving tiny-lfm3 on http://").unwrap();
    (child, address.to_owned())
}

pub fn ask(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let more = format!("host: x\r\nconnection: close\r\ncontent-length: {}", body.len());
    write!(stream, "{head}\r\n{more}\r\n\r\n{body}").unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    reply
}

/// What it said on stderr until it ended, which must have been tidily.
pub fn end(child: Child) -> String {
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    said
}

#[test]
#[cfg(unix)]
fn a_server_says_where_it_is_answers_and_ends_tidily() {
    let machine = Machine::new();
    let (child, address) = start(&machine, &["--log-format", "json", "--api-key", "sesame"]);
    let body = r#"{"messages": [{"role": "user", "content": "What is the capital of France?"}]}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json";
    assert!(ask(&address, head, body).starts_with("HTTP/1.1 401 "));
    let reply = ask(&address, &format!("{head}\r\nauthorization: Bearer sesame\r\nx-request-id: mine"), body);
    assert!(
        reply.starts_with("HTTP/1.1 200 ") && reply.contains("The capital of France is Paris."),
        "{reply}"
    );
    let said = end(child);
    for secret in ["sesame", "France", "Paris"] {
        assert!(!said.contains(secret), "{said}");
    }
    let events: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let responded =
        events.iter().find(|event| event["message"] == "responded" && event["status"] == 200).unwrap();
    assert_eq!(
        (&responded["span"]["id"], &responded["path"]),
        (&"mine".into(), &"/v1/chat/completions".into())
    );
    let answered = events.iter().find(|event| event["message"] == "answered").unwrap();
    assert_eq!((&answered["span"]["id"], &answered["prompt_tokens"]), (&"mine".into(), &16.into()));
}

#[test]
fn an_address_in_use_and_a_model_without_text_are_said_at_once() {
    let machine = Machine::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let outcome = machine.run(&["serve", "--model", "demo", "--port", &port]);
    assert_eq!(outcome.code, 1);
    let expected = format!("error: cannot listen at 127.0.0.1:{port}: Address already in use");
    assert!(outcome.stderr.starts_with(&expected), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: --port 0 takes a port that is free"), "{}", outcome.stderr);
    let micro = model("micro/lfm3-window8");
    let outcome = machine.run(&["serve", "--model", micro.to_str().unwrap(), "--port", "0"]);
    assert_eq!(outcome.code, 1);
    insta::assert_snapshot!(outcome.stderr, @"error: lfm3-window8 has no tokenizer, so it cannot be served");
}

#[test]
fn flags_that_could_never_work_are_refused() {
    let machine = Machine::new();
    for flag in [
        ["--cors-origin", "example.org"],
        ["--cors-origin", "https://example.org/"],
        ["--cors-origin", "https://a.example,https://b.example"],
        ["--max-connections", "9999999999999999999"],
        ["--parallel", "1000000000"],
    ] {
        let outcome = machine.run(&[&["serve", "--model", "demo", "--port", "0"][..], &flag[..]].concat());
        assert_eq!(outcome.code, 2, "{flag:?}: {}", outcome.stderr);
    }
    let outcome = machine.run(&["serve", "--model", "demo", "--port", "0", "--api-key", "two words"]);
    assert_eq!(outcome.code, 1);
    assert!(!outcome.stderr.contains("two words"), "{}", outcome.stderr);
}

#[test]
fn a_key_that_is_no_text_does_not_leave_the_server_open() {
    use std::os::unix::ffi::OsStrExt;
    let machine = Machine::new();
    let mut lone = machine.lone(&["serve", "--model", "demo", "--port", "0"]);
    let outcome = machine.outcome(lone.env("LONE_API_KEY", std::ffi::OsStr::from_bytes(b"sesam\xe9")));
    let expected = "error: a key has a space or a character beyond ASCII, which no request can send\n";
    assert_eq!((outcome.code, outcome.stderr.as_str()), (1, expected));
}

#[test]
fn a_file_of_keys_that_holds_none_is_refused() {
    let machine = Machine::new();
    std::fs::write(machine.path().join("keys"), "\n  \n").unwrap();
    let outcome = machine.run(&["serve", "--model", "demo", "--port", "0", "--api-key-file", "keys"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (1, "error: keys holds no key\n"));
}
