//! Grammars over the vocabulary of a real, small model.

use std::path::Path;

use super::*;
use crate::tools::{Block, read_block};

fn tokenizer() -> Tokenizer {
    Tokenizer::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/tiny-lfm3")).unwrap()
}

const VOCAB: usize = 1536;
const END: u32 = 7;

fn compiler(tokenizer: &Tokenizer) -> GrammarCompiler {
    GrammarCompiler::new(tokenizer, VOCAB, &[END, 2]).unwrap()
}

/// How much of `text` the grammar lets through, and whether the answer may end there.
fn follow(mut grammar: Grammar, tokenizer: &Tokenizer, text: &str) -> (String, bool) {
    let tokens = tokenizer.encode(text).unwrap();
    for (i, &token) in tokens.iter().enumerate() {
        let mut logits = vec![0.0; VOCAB];
        grammar.restrict(&mut logits).unwrap();
        if logits[token as usize] < 0.0 {
            return (tokenizer.decode(&tokens[..i], lone_lfm::SpecialText::Keep), false);
        }
        grammar.accept(token).unwrap();
    }
    let mut logits = vec![0.0; VOCAB];
    grammar.restrict(&mut logits).unwrap();
    (text.to_owned(), logits[END as usize] == 0.0)
}

fn weather() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}, "days": {"$ref": "#/$defs/days"}},
        "required": ["city"], "$defs": {"days": {"type": "integer"}}})
}

#[test]
fn json_of_a_schema_may_be_written_and_nothing_else() {
    let tokenizer = tokenizer();
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"], "additionalProperties": false});
    let grammar = compiler(&tokenizer).json(&schema).unwrap();
    let through = |text: &str| follow(grammar.clone(), &tokenizer, text);
    assert_eq!(through(r#"{"name": "Linus", "age": 16}"#), (r#"{"name": "Linus", "age": 16}"#.into(), true));
    assert!(!through(r#"{"name": "Linus", "age": 1"#).1);
    assert_ne!(through(r#"{"name": 5}"#).0, r#"{"name": 5}"#);
    assert_eq!(through("Sure! {").0, "");
}

#[test]
fn any_object_is_a_json_object_and_a_list_is_none() {
    let tokenizer = tokenizer();
    let grammar = compiler(&tokenizer).json_object().unwrap();
    assert!(follow(grammar.clone(), &tokenizer, r#"{"a": [1, {"b": null}]}"#).1);
    assert_eq!(follow(grammar, &tokenizer, "[1]").0, "");
}

#[test]
fn calls_are_written_as_models_write_them_with_arguments_of_their_schema() {
    let tokenizer = tokenizer();
    let marks = ToolMarks::of(&tokenizer).unwrap();
    let weather = weather();
    let tools = [
        CallSchema { name: "get_weather", parameters: weather.as_object() },
        CallSchema { name: "ping", parameters: None },
    ];
    let one = compiler(&tokenizer).calls(&marks, &tools, false, None).unwrap();
    let many = compiler(&tokenizer).calls(&marks, &tools, true, None).unwrap();
    let text = |inside: &str| format!("{}[{inside}]{}", marks.start, marks.end);
    for good in [r#"get_weather(city="Oslo")"#, r#"get_weather(city="Oslo", days=3)"#, "ping()"] {
        assert_eq!(follow(one.clone(), &tokenizer, &text(good)), (text(good), true));
    }
    for bad in
        ["get_weather()", "get_weather(days=3)", r#"get_weather(city=Oslo)"#, "pong()", "ping(), ping()"]
    {
        assert!(!follow(one.clone(), &tokenizer, &text(bad)).1, "{bad}");
    }
    let twice = text(r#"ping(), get_weather(city="x")"#);
    assert_eq!(follow(many, &tokenizer, &twice), (twice.clone(), true));
    assert!(matches!(read_block(&twice[marks.start.len()..], &marks.end, &[]), Block::Calls { .. }));
}

#[test]
fn tools_that_python_has_no_words_for_are_called_in_json() {
    let tokenizer = tokenizer();
    let marks = ToolMarks::of(&tokenizer).unwrap();
    let weather = weather();
    let either = json!({"anyOf": [weather, {"type": "object", "properties": {"x": {"const": 1}}, "required": ["x"]}],
        "$defs": {"days": {"type": "integer"}}});
    let tools = [
        CallSchema { name: "get-weather", parameters: weather.as_object() },
        CallSchema { name: "either", parameters: either.as_object() },
    ];
    let grammar = compiler(&tokenizer).calls(&marks, &tools, false, None).unwrap();
    for call in [
        r#"{"name": "get-weather", "arguments": {"city": "Oslo", "days": 2}}"#,
        r#"{"name": "either", "arguments": {"x": 1}}"#,
    ] {
        let text = format!("{}[{call}]{}", marks.start, marks.end);
        assert_eq!(follow(grammar.clone(), &tokenizer, &text), (text.clone(), true));
    }
}

#[test]
fn an_answer_may_be_json_instead_of_a_call() {
    let tokenizer = tokenizer();
    let marks = ToolMarks::of(&tokenizer).unwrap();
    let tools = [CallSchema { name: "ping", parameters: None }];
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let grammar = compiler(&tokenizer).calls(&marks, &tools, true, Some(&schema)).unwrap();
    for good in [format!("{}[ping()]{}", marks.start, marks.end), r#"{"a": 1}"#.to_owned()] {
        assert_eq!(follow(grammar.clone(), &tokenizer, &good), (good.clone(), true));
    }
    assert_eq!(follow(grammar, &tokenizer, "Hello").0, "");
}

#[test]
fn one_of_several_that_exclude_each_other_is_followed_in_answers_and_in_calls() {
    let tokenizer = tokenizer();
    let marks = ToolMarks::of(&tokenizer).unwrap();
    let schema = json!({"type": "object", "properties": {"x": {"oneOf": [{"type": "integer"}, {"type": "null"}]}}, "required": ["x"]});
    let grammar = compiler(&tokenizer).json(&schema).unwrap();
    assert!(follow(grammar.clone(), &tokenizer, r#"{"x": null}"#).1);
    assert!(!follow(grammar, &tokenizer, r#"{"x": "y"}"#).1);
    let tools = [CallSchema { name: "f", parameters: schema.as_object() }];
    let grammar = compiler(&tokenizer).calls(&marks, &tools, false, None).unwrap();
    assert!(follow(grammar, &tokenizer, &format!("{}[f(x=5)]{}", marks.start, marks.end)).1);
}

#[test]
fn what_cannot_be_followed_is_refused() {
    let tokenizer = tokenizer();
    let compiler = compiler(&tokenizer);
    for schema in [
        json!({"type": "nonsense"}),
        json!({"oneOf": [{"type": "string"}, {"minLength": 1}]}),
        json!({"$ref": "#/nowhere"}),
        json!({"$ref": "#"}),
        json!({"anyOf": [{"$ref": "#"}]}),
        json!({"type": "string", "x-guidance": {"lenient": true}}),
        json!({"type": "string", "pattern": "(?=a)b"}),
    ] {
        assert!(compiler.json(&schema).is_err(), "{schema}");
    }
    assert!(GrammarCompiler::new(&tokenizer, VOCAB, &[]).is_err());
}
