//! The tools of a request, and which of them the model is to call.

use lone_engine::Tool;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::fields::{Fields, typed};
use crate::error::ApiError;

/// Tools a request may have.
const MOST_TOOLS: usize = 128;

/// A function the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub(crate) struct Function {
    /// Its name: letters, digits, `_`, `-` and `.`.
    pub(crate) name: String,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// A JSON schema of its arguments, which are an object.
    #[schema(value_type = Option<Object>)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parameters: Option<Map<String, Value>>,
}

/// Which tools are to be called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) enum ToolChoice {
    /// As the model likes.
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

/// The tools of a request.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Tools {
    /// Functions the model may call.
    #[serde(rename = "tools")]
    #[schema(value_type = Option<Vec<TemplateTool>>)]
    pub(crate) functions: Vec<Function>,
    /// `auto`, `none`, `required`, or a function that is to be called.
    #[serde(rename = "tool_choice")]
    #[schema(value_type = Option<Value>)]
    pub(crate) choice: ToolChoice,
    /// Whether one answer may call several.
    #[serde(rename = "parallel_tool_calls")]
    #[schema(value_type = Option<bool>)]
    pub(crate) parallel: bool,
}

/// A tool as requests have it, and as chat templates take it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateTool {
    /// `function`
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function,
}

impl Tools {
    /// Takes `tools`, `tool_choice` and `parallel_tool_calls`; `None` if there are no tools.
    pub(crate) fn take(fields: &mut Fields, nested: bool) -> Result<Option<Self>, ApiError> {
        let given: Vec<Value> = fields.take("tools")?.unwrap_or_default();
        let choice: Option<Value> = fields.take("tool_choice")?;
        let parallel: Option<bool> = fields.take("parallel_tool_calls")?;
        if given.len() > MOST_TOOLS {
            return Err(ApiError::field("tools", format!("has more than {MOST_TOOLS} tools")));
        }
        let mut list: Vec<Function> = Vec::new();
        for (index, tool) in given.into_iter().enumerate() {
            let path = format!("tools[{index}]");
            let function = Function::take(&path, tool, nested)?;
            if list.iter().any(|other| other.name == function.name) {
                let problem = format!("is {:?}, as that of another tool", function.name);
                let path = if nested { format!("{path}.function") } else { path };
                return Err(ApiError::field(format!("{path}.name"), problem));
            }
            list.push(function);
        }
        let choice = choice.map_or(Ok(ToolChoice::Auto), |choice| ToolChoice::take(choice, nested))?;
        match &choice {
            ToolChoice::Auto | ToolChoice::None if list.is_empty() => return Ok(None),
            ToolChoice::Required if list.is_empty() => {
                return Err(ApiError::field("tool_choice", "is \"required\", and there are no `tools`"));
            }
            ToolChoice::Named(name) if !list.iter().any(|function| function.name == *name) => {
                return Err(ApiError::field(
                    "tool_choice",
                    format!("names {name:?}, which is none of the `tools`"),
                ));
            }
            _ => {}
        }
        Ok(Some(Tools { functions: list, choice, parallel: parallel.unwrap_or(true) }))
    }

    /// As chat templates take them.
    pub(crate) fn for_template(&self) -> Vec<Value> {
        let tool = |function: &Function| TemplateTool { kind: "function", function: function.clone() };
        let value = |function| serde_json::to_value(tool(function)).expect("tools are plain data");
        self.functions.iter().map(value).collect()
    }

    /// As responses have them.
    pub(crate) fn flat(&self) -> Vec<Value> {
        let tool = |function: &Function| {
            let mut tool = serde_json::to_value(function).expect("tools are plain data");
            tool["type"] = "function".into();
            tool
        };
        self.functions.iter().map(tool).collect()
    }

    /// As far as reading calls needs to know them.
    pub(crate) fn signatures(&self) -> Vec<Tool> {
        let signature = |function: &Function| Tool {
            name: function.name.clone(),
            parameters: function
                .properties()
                .map(|object| object.keys().cloned().collect())
                .unwrap_or_default(),
        };
        self.functions.iter().map(signature).collect()
    }
}

impl Function {
    /// Chat completions nest it in `function`, responses do not.
    fn take(path: &str, tool: Value, nested: bool) -> Result<Self, ApiError> {
        let mut tool = Fields::from(typed::<Map<String, Value>>(path, tool)?);
        let at = |error: ApiError| error.within(path);
        let kind: String = tool.require("type").map_err(at)?;
        if kind != "function" {
            let problem = format!("is {kind:?}; this server supports only \"function\"");
            return Err(ApiError::field(format!("{path}.type"), problem).coded("unsupported_value"));
        }
        if !nested {
            return Function::read(path, tool);
        }
        let function = Fields::from(tool.require::<Map<String, Value>>("function").map_err(at)?);
        tool.finish().map_err(at)?;
        Function::read(&format!("{path}.function"), function)
    }

    fn read(path: &str, mut fields: Fields) -> Result<Self, ApiError> {
        let at = |error: ApiError| error.within(path);
        let function = Function {
            name: fields.require("name").map_err(at)?,
            description: fields.take("description").map_err(at)?,
            parameters: fields.take("parameters").map_err(at)?,
        };
        fields.take::<bool>("strict").map_err(at)?;
        fields.finish().map_err(at)?;
        let kind = function.parameters.as_ref().and_then(|parameters| parameters.get("type"));
        if let Some(kind) = kind.filter(|kind| *kind != "object") {
            let problem = format!("has the type {kind}, and arguments are an object");
            return Err(ApiError::field(format!("{path}.parameters"), problem).coded("invalid_value"));
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if function.name.is_empty() || function.name.len() > 64 || !function.name.chars().all(allowed) {
            let problem = "must be 1 to 64 letters, digits, `_`, `-` or `.`";
            return Err(ApiError::field(format!("{path}.name"), problem).coded("invalid_value"));
        }
        Ok(function)
    }

    fn properties(&self) -> Option<&Map<String, Value>> {
        self.parameters.as_ref()?.get("properties")?.as_object()
    }
}

impl ToolChoice {
    /// As responses have it.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            ToolChoice::Auto => "auto".into(),
            ToolChoice::None => "none".into(),
            ToolChoice::Required => "required".into(),
            ToolChoice::Named(name) => json!({"type": "function", "name": name}),
        }
    }

    fn take(choice: Value, nested: bool) -> Result<Self, ApiError> {
        const NAME: &str = "tool_choice";
        let object = match choice {
            Value::String(word) => {
                return match word.as_str() {
                    "auto" => Ok(ToolChoice::Auto),
                    "none" => Ok(ToolChoice::None),
                    "required" => Ok(ToolChoice::Required),
                    _ => Err(ApiError::field(
                        NAME,
                        format!("is {word:?}, and must be auto, none, required or a function"),
                    )
                    .coded("invalid_value")),
                };
            }
            Value::Object(object) => object,
            _ => return Err(ApiError::field(NAME, "is neither a word nor a function").coded("invalid_value")),
        };
        let mut fields = Fields::from(object);
        let at = |error: ApiError| error.within(NAME);
        fields.only("type", &[json!("function")]).map_err(at)?;
        let name = if nested {
            let mut function = Fields::from(fields.require::<Map<String, Value>>("function").map_err(at)?);
            let inside = |error: ApiError| error.within("tool_choice.function");
            let name = function.require("name").map_err(inside)?;
            function.finish().map_err(inside)?;
            name
        } else {
            fields.require("name").map_err(at)?
        };
        fields.finish().map_err(at)?;
        Ok(ToolChoice::Named(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(object: Value) -> Result<Option<Tools>, String> {
        take_as(object, true)
    }

    fn take_as(object: Value, nested: bool) -> Result<Option<Tools>, String> {
        let mut fields = Fields::from(object.as_object().unwrap().clone());
        Tools::take(&mut fields, nested).map_err(|error| {
            serde_json::to_value(error.body()).unwrap()["error"]["param"].as_str().unwrap().to_owned()
        })
    }

    fn tool(name: &str) -> Value {
        let parameters = json!({"type": "object", "properties": {"b": {}, "a": {}}});
        json!({"type": "function", "function": {"name": name, "parameters": parameters, "strict": true}})
    }

    #[test]
    fn tools_reach_the_template_as_they_were_given_without_strict() {
        let tools = take(json!({"tools": [tool("f")]})).unwrap().unwrap();
        let mut expected = tool("f");
        expected["function"].as_object_mut().unwrap().shift_remove("strict");
        assert_eq!(tools.for_template(), [expected]);
        assert_eq!(tools.signatures()[0].parameters, ["b", "a"]);
        assert_eq!((tools.choice, tools.parallel), (ToolChoice::Auto, true));
    }

    #[test]
    fn no_tools_are_no_tools() {
        assert!(take(json!({})).unwrap().is_none());
        assert!(take(json!({"tools": [], "tool_choice": "none"})).unwrap().is_none());
    }

    #[test]
    fn a_choice_names_one_of_the_tools() {
        let named = |name: &str| json!({"tools": [tool("f")], "tool_choice": {"type": "function", "function": {"name": name}}});
        assert_eq!(take(named("f")).unwrap().unwrap().choice, ToolChoice::Named("f".into()));
        assert_eq!(take(named("g")).unwrap_err(), "tool_choice");
        assert_eq!(take(json!({"tool_choice": "required"})).unwrap_err(), "tool_choice");
        assert_eq!(take(json!({"tool_choice": "maybe"})).unwrap_err(), "tool_choice");
    }

    #[test]
    fn what_is_wrong_with_a_tool_is_named_by_its_path() {
        let table = [
            (json!([5]), "tools[0]"),
            (json!([{"type": "web_search"}]), "tools[0].type"),
            (json!([{"type": "function"}]), "tools[0].function"),
            (json!([{"type": "function", "function": {"name": "a b"}}]), "tools[0].function.name"),
            (
                json!([{"type": "function", "function": {"name": "f", "parameters": 1}}]),
                "tools[0].function.parameters",
            ),
            (
                json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]),
                "tools[0].function.parameters",
            ),
            (json!([{"type": "function", "function": {"name": "f", "color": 1}}]), "tools[0].function.color"),
            (json!([tool("f"), tool("f")]), "tools[1].function.name"),
        ];
        for (tools, param) in table {
            assert_eq!(take(json!({"tools": tools})).unwrap_err(), param);
        }
        let flat = json!({"type": "function", "name": "f"});
        assert_eq!(take_as(json!({"tools": [flat, flat]}), false).unwrap_err(), "tools[1].name");
    }
}
