//! Grammars over the vocabulary of a real, small model.

use std::path::Path;

use lone_testing::validates;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

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

/// Whether `text` may be written, and the answer end after it.
fn allows(grammar: &Grammar, tokenizer: &Tokenizer, text: &str) -> bool {
    follow(grammar.clone(), tokenizer, text).1
}

/// Of each schema and two texts, that it allows the first and not the second.
fn assert_told_apart(table: impl IntoIterator<Item = (Value, &'static str, &'static str)>) {
    let tokenizer = tokenizer();
    for (schema, good, bad) in table {
        let grammar = compiler(&tokenizer).json(&schema).unwrap();
        assert!(allows(&grammar, &tokenizer, good), "{schema}");
        assert!(!allows(&grammar, &tokenizer, bad), "{schema}");
    }
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
fn references_in_tools_lead_where_they_lead_in_their_own_schema() {
    let tokenizer = tokenizer();
    let marks = ToolMarks::of(&tokenizer).unwrap();
    let tree = json!({"type": "object", "properties": {"value": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#"}}}, "required": ["value", "children"]});
    let twice =
        json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}}});
    for name in ["f", "not-python"] {
        let tools = [CallSchema { name, parameters: tree.as_object() }];
        let grammar = compiler(&tokenizer).calls(&marks, &tools, false, None).unwrap();
        let may_be = |children: &str| {
            let call = match name {
                "f" => format!("f(value=1, children={children})"),
                name => {
                    format!(r#"{{"name": "{name}", "arguments": {{"value": 1, "children": {children}}}}}"#)
                }
            };
            allows(&grammar, &tokenizer, &format!("{}[{call}]{}", marks.start, marks.end))
        };
        assert!(may_be(r#"[{"value": 2, "children": []}]"#), "{name}");
        assert!(!may_be("[[]]") && !may_be("[[], [[]]]") && !may_be("[{}]"), "{name}");
    }
    let tools = [CallSchema { name: "f", parameters: twice.as_object() }];
    let grammar = compiler(&tokenizer).calls(&marks, &tools, false, None).unwrap();
    let may_be = |b: &str| allows(&grammar, &tokenizer, &format!("{}[f(b={b})]{}", marks.start, marks.end));
    assert!(may_be("5") && !may_be("{}"));
}

#[test]
fn arguments_are_an_object_whatever_else_their_schema_allows() {
    let tokenizer = tokenizer();
    let marks = ToolMarks::of(&tokenizer).unwrap();
    let compiler = compiler(&tokenizer);
    let call = |parameters: &Value, arguments: &str| {
        let tools = [CallSchema { name: "f", parameters: parameters.as_object() }];
        let grammar = compiler.calls(&marks, &tools, false, None)?;
        let text = format!(r#"{}[{{"name": "f", "arguments": {arguments}}}]{}"#, marks.start, marks.end);
        Ok::<_, GrammarError>(allows(&grammar, &tokenizer, &text))
    };
    let open = json!({"properties": {"a": {"type": "integer"}}, "minProperties": 1, "required": ["a"]});
    assert_eq!(call(&open, r#"{"a": 1}"#), Ok(true));
    for bad in ["1", "null", "[]", r#""a""#] {
        assert_eq!(call(&open, bad), Ok(false), "{bad}");
    }
    assert!(call(&json!({"const": 5}), "5").is_err());
}

#[test]
fn values_that_no_answer_can_have_are_no_choice() {
    let tokenizer = tokenizer();
    let compiler = compiler(&tokenizer);
    let schema = json!({"type": "object", "properties": {"a": {"const": ["\u{1}"]}, "b": {"enum": [{"x": "\u{7f}"}, "\n"]}},
        "additionalProperties": false});
    let grammar = compiler.json(&schema).unwrap();
    assert!(allows(&grammar, &tokenizer, "{}") && allows(&grammar, &tokenizer, r#"{"b": "\n"}"#));
    for beginning in [r#"{"a""#, r#"{"b": {"#] {
        assert_ne!(follow(grammar.clone(), &tokenizer, beginning).0, beginning);
    }
    assert!(compiler.json(&json!({"const": "\u{1}"})).is_err());
}

#[test]
fn an_argument_that_may_never_be_given_is_not() {
    let tokenizer = tokenizer();
    let marks = ToolMarks::of(&tokenizer).unwrap();
    let schema = json!({"type": "object", "properties": {"a": false, "b": true}});
    let tools = [CallSchema { name: "f", parameters: schema.as_object() }];
    let grammar = compiler(&tokenizer).calls(&marks, &tools, false, None).unwrap();
    let may_be =
        |inside: &str| allows(&grammar, &tokenizer, &format!("{}[f({inside})]{}", marks.start, marks.end));
    assert!(may_be("") && may_be("b=1") && !may_be("a=1"));
}

#[test]
fn json_has_a_space_where_one_is_usual_or_none() {
    let tokenizer = tokenizer();
    let grammar = compiler(&tokenizer).json_object().unwrap();
    for good in [r#"{"a":[1,2],"b":{}}"#, r#"{"a": [1, 2], "b": {}}"#] {
        assert!(allows(&grammar, &tokenizer, good), "{good}");
    }
    for bad in ["{\n}", "{ }", r#"{"a" :1}"#, r#"{"a":  1}"#, "{\"a\":[1,\n2]}"] {
        assert!(!allows(&grammar, &tokenizer, bad), "{bad}");
    }
}

#[test]
fn a_name_is_not_written_another_way_to_pass_for_another() {
    let tokenizer = tokenizer();
    let grammar = compiler(&tokenizer)
        .json(&json!({"properties": {"a": {"type": "integer"}}, "type": "object"}))
        .unwrap();
    assert!(allows(&grammar, &tokenizer, r#"{"a": 1, "b": "x"}"#));
    assert!(!allows(&grammar, &tokenizer, r#"{"\u0061": "x"}"#));
}

#[test]
fn patterns_fit_what_they_fit_in_browsers() {
    let tokenizer = tokenizer();
    let table = [
        (r"^[\x00-\x1f]{1,3}$", r#""\n""#, r#""\"""#),
        (r#"^[^"]*$"#, r#""a\n\\""#, r#""\"""#),
        (r"^[^\\]*$", r#""\"""#, r#""\\""#),
        (r#"^([^"]|\x00)*$"#, r#""a""#, r#""\"""#),
        ("^[[:alpha:]]$", r#""a]""#, r#""b""#),
        ("^[a-z&&[aeiou]]$", r#""z]""#, r#""a""#),
        (r"^\s$", "\"\u{a0}\"", "\"\u{85}\""),
        (r"^\d\w$", r#""1a""#, "\"٣a\""),
        (r"^.$", "\"😀\"", r#""\n""#),
        ("^a|b$", r#""xb""#, r#""xa""#),
        ("(^a|b)$", r#""xb""#, r#""xa""#),
        ("(?<stop>a)", r#""xax""#, r#""x""#),
        ("^$", r#""""#, r#""a""#),
    ];
    for (pattern, good, bad) in table {
        let grammar = compiler(&tokenizer).json(&json!({"type": "string", "pattern": pattern})).unwrap();
        assert!(allows(&grammar, &tokenizer, good), "{pattern} {good}");
        assert!(!allows(&grammar, &tokenizer, bad), "{pattern} {bad}");
    }
}

#[test]
fn an_exclusive_bound_is_not_said_however_near_the_other_is() {
    let oldest = "http://json-schema.org/draft-04/schema#";
    let table = [
        (json!({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}), "0.25", "0"),
        (json!({"type": "number", "minimum": -0.5, "exclusiveMaximum": 0}), "-0.25", "-0"),
        (json!({"type": "number", "exclusiveMinimum": -1.5, "exclusiveMaximum": -1}), "-1.25", "-1"),
        (json!({"type": "number", "exclusiveMinimum": 3, "maximum": 3.5}), "3.5", "3"),
        (json!({"type": "integer", "exclusiveMinimum": 3, "maximum": 5}), "4", "3"),
        (
            json!({"$schema": oldest, "type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 0.5}),
            "0.25",
            "0",
        ),
    ];
    assert_told_apart(table);
}

#[test]
fn keywords_are_read_together_wherever_they_stand() {
    let oldest = "http://json-schema.org/draft-04/schema#";
    let table = [
        (
            json!({"items": [{"type": "integer"}], "allOf": [{"type": "array"}], "additionalItems": false}),
            "[1]",
            "[1, 2]",
        ),
        (
            json!({"$schema": oldest, "minimum": 0.5, "allOf": [{"type": "number"}], "exclusiveMinimum": true, "maximum": 2}),
            "0.75",
            "0.5",
        ),
        (
            json!({"patternProperties": {"^x$": {"type": "integer"}}, "allOf": [{"type": "object"}], "additionalProperties": false}),
            r#"{"x": 1}"#,
            r#"{"y": 1}"#,
        ),
    ];
    assert_told_apart(table);
}

#[test]
fn a_fraction_of_as_many_digits_as_a_double_has_is_said_as_it_is() {
    let read = |text: &str| serde_json::from_str(text).unwrap();
    // Of the last, reading that does not keep all digits makes another double.
    let table = [
        (json!({"const": 0.123_456_789_012_345_68}), "0.12345678901234568", "0.12345678901234567"),
        (json!({"enum": [1, -7.141592653589793]}), "-7.141592653589793", "-7.141592653589794"),
        (read(r#"{"const": 94.52706955539223}"#), "94.52706955539223", "94.52706955539225"),
    ];
    assert_told_apart(table);
}

#[test]
fn patterns_that_meet_on_no_string_may_be_many() {
    let tokenizer = tokenizer();
    let mut properties: Map<String, Value> =
        (0..40).map(|i| (format!("p{i}"), json!({"type": "string", "pattern": format!("^{i}$")}))).collect();
    properties.insert("kind".into(), json!({"type": "string", "enum": ["a", "b"]}));
    assert!(compiler(&tokenizer).json(&json!({"type": "object", "properties": properties})).is_ok());
}

#[test]
fn definitions_are_copied_for_so_many_arguments_and_no_more() {
    let tokenizer = tokenizer();
    let marks = ToolMarks::of(&tokenizer).unwrap();
    let tool = |arguments: usize| {
        let properties: Map<String, Value> =
            (0..arguments).map(|i| (format!("p{i}"), json!({"$ref": "#/$defs/e"}))).collect();
        let values: Value = (0..5000).map(|i| json!(i)).collect();
        json!({"type": "object", "properties": properties, "$defs": {"e": {"enum": values}}})
    };
    let calls = |arguments: usize| {
        let parameters = tool(arguments);
        let tools = [CallSchema { name: "f", parameters: parameters.as_object() }];
        compiler(&tokenizer).calls(&marks, &tools, false, None)
    };
    assert!(calls(2).is_ok());
    assert!(calls(400).unwrap_err().reason.contains("a copy for each argument"));
}

#[test]
fn what_is_too_much_is_refused_before_it_is_tried() {
    let tokenizer = tokenizer();
    let compiler = compiler(&tokenizer);
    let definitions: Map<String, Value> = (0..1000)
        .map(|i| (format!("d{i}"), json!({"$ref": format!("#/$defs/d{}", (i + 1) % 1000)})))
        .collect();
    let many = |count: usize, schema: &dyn Fn(usize) -> Value| -> Value { (0..count).map(schema).collect() };
    let table = [
        (json!({"$ref": "#/$defs/d0", "$defs": definitions}), "1000 deep"),
        (
            json!({"allOf": many(400, &|i| json!({"type": "string", "pattern": format!("^.*{i}.*$")}))}),
            "20 patterns",
        ),
        (json!({"oneOf": many(20_000, &|i| json!({"const": i}))}), "10000 schemas"),
        (json!({"enum": many(20_000, &|i| json!(i))}), "10000 values"),
        (json!({"const": "x".repeat(300_000)}), "250000 bytes"),
        (
            json!({"oneOf": many(3000, &|i| json!({"type": "object", "properties": {"k": {"const": i}, "v": {}, "w": {}}, "required": ["k"]}))}),
            "10000 schemas",
        ),
        (json!({"type": "string", "pattern": "(".repeat(5000)}), "50 deep"),
        (json!({"allOf": [{"multipleOf": 65537}, {"multipleOf": 65539}]}), "too large together"),
        (json!({"oneOf": [{"type": "string"}, {"minLength": 1}]}), "anyOf"),
    ];
    for (schema, why) in table {
        let reason = compiler.json(&schema).unwrap_err().reason;
        assert!(reason.contains(why), "{reason}");
        assert!(!reason.contains("coerce"), "{reason}");
    }
}

#[test]
fn what_is_as_deep_as_allowed_has_room() {
    let tokenizer = tokenizer();
    let chain = |link: &dyn Fn(usize) -> Value, links: usize| {
        let mut definitions: Map<String, Value> =
            (0..links).map(|i| (format!("d{i}"), link(i + 1))).collect();
        definitions.insert(format!("d{links}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    };
    let plain = chain(&|next| json!({"$ref": format!("#/$defs/d{next}")}), 900);
    let joined =
        chain(&|next| json!({"allOf": [{"$ref": format!("#/$defs/d{next}")}, {"type": "object"}]}), 450);
    let nested = (0..55).fold(
        json!({"enum": (0..100).collect::<Vec<_>>()}),
        |inner, _| json!({"type": "object", "properties": {"a": inner}}),
    );
    let twice = json!({"allOf": [nested, nested]});
    for schema in [plain, joined, twice] {
        assert!(allows(&compiler(&tokenizer).json(&schema).unwrap(), &tokenizer, "{}"));
    }
}

/// Answers chosen at random among those allowed, as far as they come to an end.
fn samples(grammar: &Grammar, tokenizer: &Tokenizer, seed: u64) -> Option<String> {
    const MOST_TOKENS: usize = 60;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut grammar, mut tokens) = (grammar.clone(), Vec::new());
    while tokens.len() < MOST_TOKENS {
        let mut logits = vec![0.0; VOCAB];
        grammar.restrict(&mut logits).unwrap();
        let allowed: Vec<u32> = (0..VOCAB as u32).filter(|&token| logits[token as usize] == 0.0).collect();
        // What closes a string or a list comes up as often as all else, so that answers end.
        let closing = allowed.iter().copied().filter(|&token| {
            token == END || matches!(tokenizer.token_bytes(token).as_deref(), Some(b"\"" | b"]" | b"}"))
        });
        let closing: Vec<u32> = closing.collect();
        let among = if closing.is_empty() || random.random_bool(0.5) { &allowed } else { &closing };
        let token = among[random.random_range(0..among.len())];
        if token == END || token == 2 {
            return Some(tokenizer.decode(&tokens, lone_lfm::SpecialText::Keep));
        }
        grammar.accept(token).unwrap();
        tokens.push(token);
    }
    None
}

#[test]
fn whatever_ends_validates() {
    let tokenizer = tokenizer();
    let schemas = [
        json!({"type": "object", "properties": {"value": {"type": "boolean"}, "next": {"$ref": "#"}}, "required": ["value"], "additionalProperties": false}),
        json!({"properties": {"a": {"enum": [1, null]}, "b": {"$ref": "#/properties/a"}}, "type": "object", "additionalProperties": {"type": "boolean"}}),
        json!({"type": "array", "items": {"$ref": "#/$defs/pair"}, "minItems": 1, "$defs": {
            "pair": {"type": "array", "prefixItems": [{"$ref": "#/$defs/word"}, {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/pair"}]}], "minItems": 2, "items": false},
            "word": {"type": "string", "pattern": "^[^\"x]{0,3}$"}}}),
        json!({"$id": "https://example.com/x.json", "$ref": "https://example.com/x.json#/$defs/a%20b", "$defs": {"a b": {"type": "integer", "minimum": -9_223_372_036_854_775_808_i64, "maximum": 9_223_372_036_854_775_807_i64}}}),
        json!({"type": "integer", "exclusiveMaximum": 1_152_921_504_606_846_976_i64, "minimum": 1_152_921_504_606_846_000_i64}),
        json!({"type": "number", "minimum": -1e300, "maximum": 2.5, "multipleOf": 0.5}),
        json!({"type": "string", "pattern": r"\d|^\W[^a]$", "maxLength": 5}),
        json!({"type": "string", "pattern": r"^[\x00-\x1f]{1,3}$"}),
        json!({"type": "object", "patternProperties": {"^[a-c]$": {"type": "null"}}, "additionalProperties": {"const": 7}, "minProperties": 1}),
        json!({"oneOf": [{"type": "object", "properties": {"kind": {"const": "a"}, "x": {"$ref": "#"}}, "required": ["kind"], "additionalProperties": false},
            {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"], "additionalProperties": false}]}),
    ];
    let compiler = compiler(&tokenizer);
    let mut ended = 0;
    for schema in &schemas {
        let grammar = compiler.json(schema).unwrap();
        for text in (0..6).filter_map(|seed| samples(&grammar, &tokenizer, seed)) {
            let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(validates(&value, schema), "{text} {schema}");
            ended += 1;
        }
    }
    assert!(ended >= 30, "{ended}");
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
        json!({"type": "integer", "minimum": 1e30, "maximum": 1e31}),
        json!({"const": 9_007_199_254_740_993_i64}),
        json!({"type": "object", "minProperties": 2}),
        json!({"$ref": "#name", "$defs": {"x": {"$anchor": "name"}}}),
        json!({"$ref": "https://example.com/x"}),
        json!({"properties": {"a": {"$id": "a.json", "items": {"$ref": "#"}}}}),
    ] {
        assert!(compiler.json(&schema).is_err(), "{schema}");
    }
    assert!(GrammarCompiler::new(&tokenizer, VOCAB, &[]).is_err());
}
