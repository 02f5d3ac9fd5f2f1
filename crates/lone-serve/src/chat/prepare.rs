//! From a chat request to what the engine is asked.

use lone_engine::{CallSchema, Grammar, Parts, Request, RequestError, Sampling};

use crate::error::ApiError;
use crate::model::{Rendering, ServedModel};
use crate::request::{ChatRequest, Choosing, Format, Function, ToolChoice, Tools, messages};
use crate::state::Server;

/// A bias that no logit makes up for.
const NEVER: f32 = -1e30;

/// What the engine is asked, and how its answers are to be read.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// One an answer.
    pub(crate) requests: Vec<Request>,
    pub(crate) parts: Parts,
    /// Whether one answer may have several calls.
    pub(crate) parallel_calls: bool,
    /// The field that has the form which the answers are held to, if they are.
    pub(crate) held_by: Option<String>,
}

/// Checks `request` against the model and turns it into tokens.
pub(crate) fn prepare(server: &Server, request: &ChatRequest) -> Result<Prepared, ApiError> {
    let model = &server.model;
    model.check_name(request.model.as_deref())?;
    let text = render(model, request)?;
    let prompt = model.encode(&text, "messages")?;
    model.check_prompt(&prompt, "messages")?;
    let mut sampling = request.choosing.sampling(&model.sampling, model.facts.vocab_size)?;
    let tools = request.tools.as_ref();
    if tools.is_some_and(|tools| tools.choice == ToolChoice::None) {
        forbid_calls(model, &mut sampling);
    }
    let (grammar, held_by) = grammar(model, tools, &request.response_format)?.unzip();
    if grammar.is_some() && !request.choosing.stops().is_empty() {
        return Err(ApiError::field(
            "stop",
            "could end an answer before it is what `response_format` or `tool_choice` asks for",
        ));
    }
    let callable = tools.filter(|tools| tools.choice != ToolChoice::None);
    let parts = Parts::new(model.marks.clone().zip(callable.map(Tools::signatures)));
    // A constrained answer is JSON or calls from its first token, whatever the template has opened.
    let parts = match grammar {
        Some(_) => parts.held(),
        None if text.trim_end().ends_with("<think>") => parts.in_reasoning(),
        None => parts,
    };
    let most_tokens = request.most_tokens().unwrap_or(usize::MAX);
    let template = Request {
        prompt,
        max_new_tokens: most_tokens,
        stop_tokens: model.facts.eos_token_ids.clone(),
        logprobs: request.logprobs(),
        grammar,
        ..Request::default()
    };
    let requests = answers(&template, &sampling, &request.choosing)?;
    Ok(Prepared { requests, parts, parallel_calls: tools.is_none_or(|tools| tools.parallel), held_by })
}

/// The conversation as the model reads it.
fn render(model: &ServedModel, request: &ChatRequest) -> Result<String, ApiError> {
    let tools = request.tools.as_ref().map(Tools::for_template);
    let messages = messages(request.messages.clone(), &model.reading)?;
    let variables = request.variables();
    let rendering = Rendering { tools: tools.as_deref(), variables: Some(&variables), is_complete: false };
    model.render(&messages, &rendering)
}

/// What the answer must be, if it may not be anything, and the field that says so: calls where they are required, and
/// else of the form asked for.
fn grammar(
    model: &ServedModel,
    tools: Option<&Tools>,
    format: &Format,
) -> Result<Option<(Grammar, String)>, ApiError> {
    let (schema, path) = match format {
        Format::Text => (None, ""),
        Format::Json { schema, path } => (Some(schema), path.as_str()),
    };
    let is_chosen = |function: &&Function| match tools.map(|tools| &tools.choice) {
        Some(ToolChoice::Named(name)) => function.name == *name,
        choice => choice.is_some_and(|choice| *choice != ToolChoice::None),
    };
    let chosen = tools.into_iter().flat_map(|tools| &tools.functions).filter(is_chosen);
    let chosen: Vec<_> = chosen.map(schema_of).collect();
    let choice = tools.map_or(&ToolChoice::None, |tools| &tools.choice);
    let must_call = matches!(choice, ToolChoice::Required | ToolChoice::Named(_));
    let schema = schema.filter(|_| !must_call);
    if schema.is_none() && !must_call {
        return Ok(None);
    }
    let grammars = model.grammars()?;
    let compiled = match (schema, &model.marks) {
        (Some(schema), _) if chosen.is_empty() => grammars.json(schema),
        (schema, Some(marks)) => {
            let many = tools.is_some_and(|tools| tools.parallel) && !matches!(choice, ToolChoice::Named(_));
            grammars.calls(marks, &chosen, many, schema)
        }
        (_, None) => unreachable!("tools are refused where there are no marks for their calls"),
    };
    match compiled {
        Ok(grammar) => Ok(Some((grammar, if must_call { "tools" } else { path }.to_owned()))),
        Err(error) => {
            // Of a form and tools together, the tools are at fault if the form alone is not.
            let is_of_tools = !chosen.is_empty()
                && schema.is_none_or(|schema| !error.is_for_now && grammars.json(schema).is_ok());
            let path = if is_of_tools { "tools" } else { path };
            let refusal = ApiError::field(path, format!("cannot be followed: {}", error.reason));
            Err(if error.is_for_now { refusal.for_now() } else { refusal })
        }
    }
}

fn schema_of(function: &Function) -> CallSchema<'_> {
    CallSchema { name: &function.name, parameters: function.parameters.as_ref() }
}

fn forbid_calls(model: &ServedModel, sampling: &mut Sampling) {
    let mark = model.marks.as_ref().and_then(|marks| model.tokenizer.token(&marks.start));
    if let Some(mark) = mark {
        sampling.logit_bias.insert(mark, NEVER);
    }
}

/// As many of `template` as `choosing` asks for, each with a seed of its own.
pub(crate) fn answers(
    template: &Request,
    sampling: &Sampling,
    choosing: &Choosing,
) -> Result<Vec<Request>, ApiError> {
    let stop = choosing.stops();
    if stop.iter().any(String::is_empty) {
        return Err(RequestError::EmptyStop.into());
    }
    let answer = |number: u32| {
        let seed = sampling.seed.map(|seed| seed.wrapping_add(number.into()));
        Request { sampling: Sampling { seed, ..sampling.clone() }, stop: stop.clone(), ..template.clone() }
    };
    Ok((0..choosing.answers()).map(answer).collect())
}
