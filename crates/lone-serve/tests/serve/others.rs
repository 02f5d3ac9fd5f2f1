//! What the server says of itself, and of text.

use serde_json::json;

use crate::host::{CTX, Host};

#[test]
fn models_are_listed_and_found() {
    let host = Host::new();
    let list = host.get("/v1/models").json(200);
    assert_eq!((&list["object"], &list["data"][0]["id"]), (&json!("list"), &json!("tiny-lfm3")));
    assert_eq!(list["data"][0]["meta"]["n_ctx"], CTX);
    assert_eq!(host.get("/v1/models/tiny-lfm3").json(200), list["data"][0]);
    assert_eq!(host.get("/props").json(200)["default_generation_settings"]["n_ctx"], CTX);
    assert_eq!(host.get("/health").json(200), json!({"status": "ok"}));
}

#[test]
fn tokens_become_text_and_text_becomes_tokens() {
    let host = Host::new();
    let text = "Grüße, <|im_start|> 世界";
    let tokens = host.post("/tokenize", &json!({"content": text})).json(200)["tokens"].clone();
    assert!(tokens.as_array().unwrap().contains(&json!(6)), "special tokens are themselves: {tokens}");
    assert_eq!(host.post("/detokenize", &json!({"tokens": tokens})).json(200)["content"], text);
    let pieces = host
        .post("/tokenize", &json!({"content": "capital", "with_pieces": true, "add_special": true}))
        .json(200);
    assert_eq!(pieces["tokens"][0], json!({"id": 1, "piece": "<|startoftext|>"}));
    assert_eq!(host.post("/detokenize", &json!({"tokens": [1, 999_999]})).refused(), "tokens[1]");
    assert_eq!(host.post("/tokenize", &json!({"content": "x", "surprise": 1})).refused(), "surprise");
}

#[test]
fn a_template_shows_what_the_model_reads() {
    let host = Host::new();
    let body = json!({"messages": [{"role": "user", "content": "Hi"}]});
    let rendered = host.post("/apply-template", &body).json(200)["prompt"].clone();
    assert_eq!(rendered, "<|startoftext|><|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

#[test]
fn tools_that_a_template_does_not_show_are_refused_wherever_it_is_rendered() {
    let template = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}";
    let host = Host::templated(template, "tiny/plain");
    let body = json!({"messages": [{"role": "user", "content": "Hi"}]});
    assert_eq!(host.post("/apply-template", &body).json(200)["prompt"], "user: Hi\n");
    let mut body = body;
    body["tools"] = crate::chat::tools();
    for path in ["/apply-template", "/v1/chat/completions"] {
        assert_eq!(host.post(path, &body).refused(), "tools", "{path}");
    }
    assert_eq!(host.get("/v1/models/tiny/plain").json(200)["id"], "tiny/plain");
    assert_eq!(host.get("/v1/models/tiny%2Fplain").json(200)["id"], "tiny/plain");
}

#[test]
fn metrics_count_what_was_answered() {
    let host = Host::new();
    host.chat(&json!({"messages": [{"role": "user", "content": "What is the capital of France?"}]}));
    let reply = host.get("/metrics");
    assert!(reply.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    for line in [
        "lone_answers_total 1",
        "lone_prefill_tokens_total 16",
        "lone_requests_total{path=\"/v1/chat/completions\",status=\"200\"} 1",
    ] {
        assert!(reply.body.contains(line), "{line} is not in {}", reply.body);
    }
    for name in [
        "lone_decode_seconds_total",
        "lone_decode_tokens_per_second",
        "lone_queue_waiting",
        "lone_session_bytes",
    ] {
        assert!(reply.body.contains(name), "{name} is not in {}", reply.body);
    }
}

#[test]
fn the_page_is_one_file_that_loads_nothing() {
    let reply = Host::new().get("/");
    let policy = reply.header("content-security-policy").unwrap();
    let nonce = policy.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert!(policy.starts_with("default-src 'none'"));
    for tag in ["script", "style"] {
        assert!(reply.body.contains(&format!("<{tag} nonce=\"{nonce}\">")), "{tag}");
    }
    for outside in ["src=", "href=", "http://", "https://", "innerHTML", "url("] {
        assert!(!reply.body.contains(outside), "{outside}");
    }
}
