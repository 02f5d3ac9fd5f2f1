//! Answers whose tokens are guessed: the same answers in fewer passes, with and without a grammar.

use lone_engine::{NgramSimple, Proposers, SchedulerOptions};
use lone_serve::ServeOptions;
use serde_json::{Value, json};

use crate::host::Host;

const RECORD: &str = r#"{"name": "Linus", "age": 16}"#;

/// A server that guesses wherever two tokens stood together before.
fn guessing() -> Host {
    let proposers = Some(Proposers::new(|| Box::new(NgramSimple::new(2, 8))));
    let scheduling = SchedulerOptions { proposers, ..SchedulerOptions::default() };
    Host::with("tiny-lfm3", scheduling, ServeOptions::default())
}

/// A conversation whose last answer is likely that of the turn before.
fn body(more: &Value) -> Value {
    let ask = json!({"role": "user", "content": "Write JSON with name Linus and age 16."});
    let mut body = json!({"messages": [ask, {"role": "assistant", "content": RECORD}, ask]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[test]
fn guesses_save_passes_change_nothing_and_are_reported() {
    let (plain, guessing) = (Host::new(), guessing());
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"], "additionalProperties": false});
    let format = json!({"type": "json_schema", "json_schema": {"name": "person", "schema": schema}});
    for more in [json!({}), json!({"response_format": format})] {
        let [plain, guessed] = [&plain, &guessing].map(|host| host.chat(&body(&more)));
        let text = &guessed["choices"][0]["message"]["content"];
        assert_eq!((text, text), (&plain["choices"][0]["message"]["content"], &json!(RECORD)));
        let timing = |answer: &Value, name: &str| answer["timings"][name].as_f64().unwrap();
        let guessed = |name| timing(&guessed, name);
        assert!(guessed("draft_n_accepted") > 0.0 && guessed("draft_n") >= guessed("draft_n_accepted"));
        assert!(guessed("draft_passes") > 0.0 && guessed("draft_passes") <= guessed("predicted_passes"));
        assert_eq!(guessed("predicted_per_pass"), guessed("predicted_n") / guessed("predicted_passes"));
        assert_eq!(guessed("predicted_n"), timing(&plain, "predicted_n"));
        assert_eq!((timing(&plain, "draft_n"), timing(&plain, "predicted_per_pass")), (0.0, 1.0));
    }
}
