//! Renderings against transformers' own, and every place a template can come from.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::Tokenizer;

fn model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(name)
}

fn render(template: &str, variables: &Value) -> Result<String, ChatError> {
    let messages = [json!({"role": "user", "content": "Hi"})];
    let variables = variables.as_object();
    ChatTemplate::parse(template, SpecialTokens::default())?
        .render(&Conversation { variables, ..Conversation::new(&messages) })
}

fn renders(template: &str, variables: &Value) -> String {
    render(template, variables).unwrap()
}

#[test]
fn conversations_render_and_tokenize_as_transformers_does() {
    for name in ["tiny-lfm2", "tiny-lfm3"] {
        let template = ChatTemplate::open(&model(name)).unwrap();
        assert_eq!(template.source(), TemplateSource::File);
        let tokenizer = Tokenizer::open(&model(name)).unwrap();
        let text = std::fs::read_to_string(model(name).join("chat.json")).unwrap();
        let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!(!cases.is_empty());
        for case in &cases {
            let conversation = Conversation {
                tools: case.get("tools").and_then(Value::as_array).map(Vec::as_slice),
                ..Conversation::new(case["messages"].as_array().unwrap())
            };
            let for_answer = template.render(&conversation).unwrap();
            assert_eq!(for_answer, case["rendered_for_answer"].as_str().unwrap());
            let closed = Conversation { add_generation_prompt: false, ..conversation };
            assert_eq!(template.render(&closed).unwrap(), case["rendered"].as_str().unwrap());
            let ids: Vec<u32> = serde_json::from_value(case["ids"].clone()).unwrap();
            assert_eq!(tokenizer.encode(&for_answer).unwrap(), ids);
        }
    }
}

#[test]
fn json_is_spelled_as_json_dumps_spells_it() {
    let value =
        json!({"v": {"s": "<é \"\\\n\u{7f}\u{1}🧪>", "f": 1e16, "l": [1, true, null], "e": {}, "a": 0.5}});
    for (arguments, expected) in [
        (
            "",
            "{\"s\": \"<é \\\"\\\\\\n\u{7f}\\u0001🧪>\", \"f\": 1e+16, \"l\": [1, true, null], \"e\": {}, \"a\": 0.5}",
        ),
        (
            "(ensure_ascii=true)",
            r#"{"s": "<\u00e9 \"\\\n\u007f\u0001\ud83e\uddea>", "f": 1e+16, "l": [1, true, null], "e": {}, "a": 0.5}"#,
        ),
        (
            "(false, 1, none, true)",
            "{\n \"a\": 0.5,\n \"e\": {},\n \"f\": 1e+16,\n \"l\": [\n  1,\n  true,\n  null\n ],\n \
             \"s\": \"<é \\\"\\\\\\n\u{7f}\\u0001🧪>\"\n}",
        ),
        (
            "(separators=(',', ':'))",
            "{\"s\":\"<é \\\"\\\\\\n\u{7f}\\u0001🧪>\",\"f\":1e+16,\"l\":[1,true,null],\"e\":{},\"a\":0.5}",
        ),
    ] {
        assert_eq!(renders(&format!("{{{{ v|tojson{arguments} }}}}"), &value), expected, "{arguments}");
    }
    assert_eq!(renders("{{ {1: 2, none: 3, true: 4.0}|tojson }}", &json!({})), r#"{"1": 4.0, "null": 3}"#);
    assert_eq!(renders("{{ [1, [2]]|tojson(indent='\t') }}", &json!({})), "[\n\t1,\n\t[\n\t\t2\n\t]\n]");
    for bad in
        ["missing|tojson", "1|tojson(nonsense=1)", "1|tojson(separators=['x'])", "1|tojson(1, 2, 3, 4, 5)"]
    {
        assert!(render(&format!("{{{{ {bad} }}}}"), &json!({})).is_err(), "{bad}");
    }
}

/// Renderings by Jinja2 3.1 with the environment that transformers sets up.
#[test]
fn what_templates_are_written_with_renders_as_in_jinja() {
    let said = [("system", "S"), ("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")];
    let messages = said.map(|(role, content)| json!({"role": role, "content": content}));
    for (template, expected) in [
        (
            "{% set ns = namespace(last=-1, n=0, names=[]) %}\n{% for m in messages %}\n  {% if m.role == 'user' %}\
             {% set ns.last = loop.index0 %}{% set ns.names = ns.names + [m.content] %}{% endif %}\n  \
             {% set ns.n = ns.n + 1 %}\n{% endfor %}\n{{ ns.last }} of {{ ns.n }}: {{ ns.names }}",
            "3 of 5: ['a', 'c']",
        ),
        (
            "{% for m in messages %}\n{% if loop.first %}{% continue %}{% endif %}\n\
             {% if m.content == 'd' %}{% break %}{% endif %}\n{{ loop.index }}{{ m.content }},\n{% endfor %}",
            "2a,\n3b,\n4c,\n",
        ),
        (
            "{{ messages[::-1][0].content }}{{ messages | selectattr('role', 'equalto', 'user') | \
             map(attribute='content') | join('+') }}{{ messages | rejectattr('role', 'eq', 'user') | list | length }}",
            "da+c3",
        ),
        (
            "{% for k, v in {'b': 1, 'a': 2}.items() %}{{ k }}{{ v }}{% endfor %}{{ {'b': 1, 'a': 2} | dictsort }}",
            "b1a2[('a', 2), ('b', 1)]",
        ),
        (
            "{{ 7 // 2 }}{{ -7 // 2 }}{{ 7 % 4 }}{{ 2 ** 3 }}{{ 1 / 2 }}{{ (messages | length) is odd }}{{ 'a' in 'cat' }}\
             {{ 'x'.startswith(('x', 'y')) }}{{ ' x '.strip() ~ 'abc'[1:].upper() }}",
            "3-4380.5TrueTrueTruexBC",
        ),
    ] {
        let template = ChatTemplate::parse(template, SpecialTokens::default()).unwrap();
        assert_eq!(template.render(&Conversation::new(&messages)).unwrap(), expected);
    }
}

#[test]
fn tools_keep_the_order_of_their_keys_and_documents_their_own() {
    let template = "{% for tool in tools %}{{ tool | tojson }}\n{{ tool.parameters | tojson(indent=2) }}{% endfor %}\n\
                    {% for d in documents %}[{{ loop.index }}] {{ d['title'] }}: {{ d.text }}\n{% endfor %}";
    let tools = [json!({"name": "f", "parameters": {"b": {"type": "<é & 'x'>"}, "a": ["b"]}})];
    let documents = [json!({"title": "T1", "text": "one"}), json!({"title": "T2", "text": "two"})];
    let conversation =
        Conversation { tools: Some(&tools), documents: Some(&documents), ..Conversation::new(&[]) };
    let rendered = ChatTemplate::parse(template, SpecialTokens::default()).unwrap().render(&conversation);
    let expected = r#"{"name": "f", "parameters": {"b": {"type": "<é & 'x'>"}, "a": ["b"]}}
{
  "b": {
    "type": "<é & 'x'>"
  },
  "a": [
    "b"
  ]
}[1] T1: one
[2] T2: two
"#;
    assert_eq!(rendered.unwrap(), expected);
}

#[test]
fn values_print_as_python_prints_them() {
    let value = json!({"v": [true, null, 1.0, 1e-7, "it's", {"a": []}]});
    assert_eq!(renders("{{ v }}", &value), r#"[True, None, 1.0, 1e-07, "it's", {'a': []}]"#);
    assert_eq!(
        renders("{{ v|string }}{{ v[0] }}{{ none }}", &value),
        r#"[True, None, 1.0, 1e-07, "it's", {'a': []}]TrueNone"#
    );
    assert_eq!(renders("{{ (1,) }}{{ 'a=b=c'.partition('=') }}", &value), "(1,)('a', '=', 'b=c')");
}

#[test]
fn generation_blocks_render_their_content_in_a_scope_of_their_own() {
    let template = "{% generation %}\n a {% set q = 1 %}\n  {% endgeneration %}\nb{{ q is defined }}";
    assert_eq!(renders(template, &json!({})), " a b".to_owned() + "False");
    assert_eq!(renders("x {%- generation -%} a {%- endgeneration -%} y", &json!({})), "xay");
}

#[test]
fn blocks_leave_no_line_of_their_own() {
    assert_eq!(renders("{% if true %}\n  x\n  {% endif %}\n y\n", &json!({})), "  x\n y");
}

#[test]
fn variables_are_those_that_transformers_passes() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("tokenizer_config.json"), r#"{"bos_token": "<s>", "eos_token": "</s>",
        "chat_template": "{{ bos_token }}{{ eos_token }}{{ tools is none }}{{ documents is none }}{{ thinking }}"}"#)
        .unwrap();
    let template = ChatTemplate::open(dir.path()).unwrap();
    let variables = json!({"eos_token": "overridden", "thinking": true, "tools": 1});
    let conversation = Conversation { variables: variables.as_object(), ..Conversation::new(&[]) };
    assert_eq!(template.render(&conversation).unwrap(), "<s>overriddenTrueTrueTrue");
}

#[test]
fn a_template_may_refuse_a_conversation() {
    let error =
        render("{% macro f() %}{{ raise_exception('No turns: ' ~ 0) }}{% endmacro %}{{ f() }}", &json!({}));
    let Err(ChatError::Refused { message }) = error else { panic!("{error:?}") };
    assert_eq!(message, "No turns: 0");
}

#[test]
fn errors_say_where_they_are() {
    let error = render("\n{% if %}", &json!({})).unwrap_err().to_string();
    assert!(
        error.starts_with("chat template \"default\" of chat_template.jinja: syntax error: ")
            && error.contains("default:2"),
        "{error}"
    );
    let error = render("\n\n{{ 1 + 'a' }}", &json!({})).unwrap_err().to_string();
    assert!(error.starts_with("chat template: ") && error.contains("default:3"), "{error}");
}

#[test]
fn the_clock_is_todays() {
    let year = jiff::ZonedDateTime::now().year().to_string();
    let rendered = renders("{{ strftime_now('%Y') }}", &json!({}));
    assert!(rendered == year || rendered == jiff::ZonedDateTime::now().year().to_string());
}

#[test]
fn named_templates_are_chosen_by_whether_there_are_tools() {
    let dir = TempDir::new().unwrap();
    let write = |value: Value| {
        std::fs::write(dir.path().join("tokenizer_config.json"), json!({"chat_template": value}).to_string())
            .unwrap();
    };
    let (plain, tools) = (Conversation::new(&[]), [json!({"name": "f"})]);
    let with_tools = Conversation { tools: Some(&tools), ..plain };
    write(json!([{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]));
    let template = ChatTemplate::open(dir.path()).unwrap();
    assert_eq!(template.source(), TemplateSource::TokenizerConfig);
    assert_eq!(
        (template.render(&plain).unwrap(), template.render(&with_tools).unwrap()),
        ("d".to_owned(), "t".to_owned())
    );
    write(json!([{"name": "rag", "template": "r"}]));
    let error = ChatTemplate::open(dir.path()).unwrap().render(&plain).unwrap_err().to_string();
    assert_eq!(error, "the checkpoint's chat templates are named rag; none of them is \"default\"");
    write(json!(7));
    let error = ChatTemplate::open(dir.path()).unwrap_err().to_string();
    assert!(error.ends_with("must be a string or a list of {name, template}, found 7"), "{error}");
}

#[test]
fn a_checkpoint_without_a_template_gets_chatml() {
    let template = ChatTemplate::open(TempDir::new().unwrap().path()).unwrap();
    assert_eq!(template.source(), TemplateSource::BuiltIn);
    let messages = [
        json!({"role": "system", "content": "S"}),
        json!({"role": "user", "content": "U"}),
        json!({"role": "assistant", "content": null}),
        json!({"role": "tool", "content": {"r": 1}}),
    ];
    let tools = [json!({"name": "f"}), json!({"name": "g"})];
    let rendered =
        template.render(&Conversation { tools: Some(&tools), ..Conversation::new(&messages) }).unwrap();
    assert_eq!(
        rendered,
        "<|im_start|>system\nS\nList of tools: <|tool_list_start|>[{\"name\": \"f\"}, {\"name\": \"g\"}]\
         <|tool_list_end|><|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n\
         <|im_start|>tool\n<|tool_response_start|>{\"r\": 1}<|tool_response_end|><|im_end|>\n\
         <|im_start|>assistant\n"
    );
    let closed = Conversation { add_generation_prompt: false, ..Conversation::new(&messages[1..2]) };
    assert_eq!(template.render(&closed).unwrap(), "<|im_start|>user\nU<|im_end|>\n");
}

proptest::proptest! {
    #[test]
    fn any_template_is_parsed_or_refused(template in "([{}%#'\"-]|generation|endgeneration|if|raw|x|\\|tojson| ){0,30}") {
        let _ = render(&template, &json!({}));
    }
}
