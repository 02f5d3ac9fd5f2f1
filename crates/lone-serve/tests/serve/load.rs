//! Many clients, leaving clients, a server that is to stop.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lone_engine::SchedulerOptions;
use lone_serve::ServeOptions;
use serde_json::{Value, json};

use crate::host::Host;

/// As long as the context: nothing ends it before.
fn endless(stream: bool) -> Value {
    json!({"messages": [{"role": "user", "content": "Count from 3 to 9."}], "stream": stream,
        "logit_bias": {"7": -100, "2": -100}})
}

/// Sends a request and returns before its answer.
fn send(host: &Host, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(host.address).unwrap();
    let body = body.to_string();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    stream
}

/// A line of `/metrics`.
fn metric(host: &Host, name: &str) -> f64 {
    let text = host.get("/metrics").body;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never happened");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_client_that_leaves_frees_its_place_whether_it_streams_or_not() {
    let host = Host::new();
    for stream in [true, false] {
        let before = metric(&host, "lone_abandoned_requests_total");
        let client = send(&host, &endless(stream));
        wait_until(|| metric(&host, "lone_requests_active") == 1.0);
        drop(client);
        wait_until(|| metric(&host, "lone_abandoned_requests_total") == before + 1.0);
        let answer =
            host.chat(&json!({"messages": [{"role": "user", "content": "What is the capital of France?"}]}));
        assert_eq!(answer["choices"][0]["message"]["content"], "The capital of France is Paris.");
    }
    wait_until(|| metric(&host, "lone_requests_active") == 0.0);
}

#[test]
fn a_client_that_leaves_is_noticed_behind_bytes_of_a_next_request() {
    let host = Host::new();
    for more in ["\r\n", "GET /health HTTP/1.1\r\nhost: x\r\n\r\n"] {
        let before = metric(&host, "lone_abandoned_requests_total");
        let mut client = send(&host, &endless(false));
        client.write_all(more.as_bytes()).unwrap();
        wait_until(|| metric(&host, "lone_requests_active") == 1.0);
        drop(client);
        wait_until(|| metric(&host, "lone_abandoned_requests_total") == before + 1.0);
    }
}

#[test]
fn an_answer_that_the_end_of_the_server_cuts_off_says_so() {
    let options = ServeOptions { shutdown_timeout: Duration::from_millis(1), ..ServeOptions::default() };
    let mut host = Host::with("tiny-lfm3", SchedulerOptions { parallel: 2, ..Default::default() }, options);
    let clients = [true, false].map(|stream| send(&host, &endless(stream)));
    wait_until(|| metric(&host, "lone_requests_active") == 2.0);
    host.stop();
    let [streamed, whole] = clients.map(|mut client| {
        let mut reply = String::new();
        client.read_to_string(&mut reply).unwrap();
        reply
    });
    assert!(streamed.contains("data: {\"error\":{\"message\":\"the server has ended"), "{streamed}");
    assert!(streamed.contains("data: [DONE]"), "{streamed}");
    assert!(whole.starts_with("HTTP/1.1 503 "), "{whole}");
}

#[test]
fn a_full_queue_is_429_and_says_when_to_come_again() {
    let host =
        Host::with("tiny-lfm3", SchedulerOptions { queue: 1, ..Default::default() }, ServeOptions::default());
    let slow = [(); 8].map(|()| send(&host, &endless(true)));
    let statuses: Vec<String> = slow
        .into_iter()
        .map(|client| {
            let mut line = String::new();
            BufReader::new(client).read_line(&mut line).unwrap();
            line
        })
        .collect();
    let refused = statuses.iter().filter(|line| line.contains(" 429 ")).count();
    assert!((1..8).contains(&refused), "{statuses:?}");
}

#[test]
fn a_long_answer_does_not_hold_up_a_short_one() {
    let host = Host::with(
        "tiny-lfm3",
        SchedulerOptions { parallel: 2, ..Default::default() },
        ServeOptions::default(),
    );
    let long = send(&host, &endless(true));
    wait_until(|| metric(&host, "lone_requests_active") == 1.0);
    let answers = metric(&host, "lone_answers_total");
    let short =
        host.chat(&json!({"messages": [{"role": "user", "content": "What is 3 + 4?"}], "max_tokens": 3}));
    assert_eq!(short["usage"]["completion_tokens"], 3);
    assert_eq!(metric(&host, "lone_answers_total"), answers + 1.0, "the long one was over first");
    drop(long);
}

#[test]
fn answers_that_take_too_long_end_with_a_clear_error() {
    let options = ServeOptions { request_timeout: Duration::from_millis(30), ..ServeOptions::default() };
    let host = Host::with("tiny-lfm3", SchedulerOptions::default(), options);
    let refusal = host.post("/v1/chat/completions", &endless(false)).json(504);
    assert_eq!(refusal["error"]["type"], "timeout_error");
    let events = host.stream("/v1/chat/completions", &endless(true));
    let [.., error, done] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&error["error"]["type"], done), (&json!("timeout_error"), &json!("[DONE]")));
}

#[test]
fn a_server_that_is_to_stop_finishes_its_streams_and_takes_no_more() {
    let mut host = Host::new();
    let mut client = BufReader::new(send(&host, &endless(true)));
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    assert!(line.contains("200"), "{line}");
    host.ask_to_stop();
    let mut rest = String::new();
    client.read_to_string(&mut rest).unwrap();
    assert!(rest.contains(r#""finish_reason":"length""#) && rest.contains("[DONE]"), "{rest}");
    host.stop();
    assert!(TcpStream::connect(host.address).is_err());
}

#[test]
fn many_clients_at_once_all_get_their_own_right_answer() {
    let host = Host::with(
        "tiny-lfm3",
        SchedulerOptions { parallel: 3, ..Default::default() },
        ServeOptions::default(),
    );
    let capitals = [("France", "Paris"), ("Austria", "Vienna"), ("Italy", "Rome"), ("Japan", "Tokyo")];
    std::thread::scope(|scope| {
        for (country, capital) in capitals.iter().cycle().take(24) {
            let host = &host;
            scope.spawn(move || {
                let body = json!({"messages": [{"role": "user", "content": format!("What is the capital of {country}?")}]});
                let answer = host.chat(&body)["choices"][0]["message"]["content"].clone();
                assert_eq!(answer, format!("The capital of {country} is {capital}."));
            });
        }
    });
}

#[test]
fn large_bodies_are_all_answered_and_a_small_one_does_not_wait_for_them() {
    const MANY: usize = 12;
    let host = Host::new();
    // It takes a while to tokenize. Spaces make the body as large as those of which only so many are read at a time.
    let large =
        json!({"content": "What is the capital of France? ".repeat(5000)}).to_string() + &" ".repeat(1 << 20);
    let tokenize = |body: &str| {
        let reply = host.post_text("/tokenize", &[("content-type", "application/json")], body);
        reply.json(200)["tokens"].as_array().unwrap().len()
    };
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let clients = [(); MANY].map(|()| {
            scope.spawn(|| {
                let tokens = tokenize(&large);
                answered.fetch_add(1, Ordering::SeqCst);
                tokens
            })
        });
        wait_until(|| answered.load(Ordering::SeqCst) > 0);
        let tokens = tokenize(r#"{"content": "What is the capital of France? "}"#);
        let before = answered.load(Ordering::SeqCst);
        assert!(before < MANY, "it was answered after all of them");
        for client in clients {
            assert!(client.join().unwrap() > 4000 * tokens);
        }
    });
}
