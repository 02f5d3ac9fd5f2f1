//! Text, tokens and templates without an answer: `/tokenize`, `/detokenize`, `/apply-template`.

use axum::Json;
use axum::extract::State;
use lone_engine::{RequestError, raw_prompt};
use lone_lfm::SpecialText;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorBody};
use crate::model::Rendering;
use crate::request::{Body, Tools, messages, take_variables};
use crate::state::{Server, Shared};

/// Bytes of text, or tokens, that one request may bring: one word of ten million letters would take half a minute.
const MOST: usize = 1 << 20;

/// Text to make tokens of.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenizeRequest {
    content: String,
    /// Whether the beginning-of-text token is put in front.
    add_special: Option<bool>,
    /// Whether each token comes with its text.
    with_pieces: Option<bool>,
}

/// Tokens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tokens {
    tokens: Vec<Token>,
}

/// The id of a token, or the id with its text.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum Token {
    Id(u32),
    Piece { id: u32, piece: String },
}

/// Tokens to make text of.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DetokenizeRequest {
    tokens: Vec<u32>,
}

/// Text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Text {
    content: String,
}

/// A conversation to render.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateRequest {
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Value>,
    #[schema(value_type = Option<Object>)]
    chat_template_kwargs: Option<Map<String, Value>>,
    /// Whether the assistant's turn is opened; it is unless this is false.
    add_generation_prompt: Option<bool>,
    #[serde(flatten)]
    tools: Option<Tools>,
}

/// What the model would read.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Rendered {
    prompt: String,
}

/// Makes tokens of text.
#[utoipa::path(
    post, path = "/tokenize", request_body = TokenizeRequest,
    responses((status = 200, body = Tokens), (status = 400, body = ErrorBody, description = "A field is wrong"))
)]
pub(crate) async fn tokenize(State(server): State<Shared>, body: Body) -> Result<Json<Tokens>, ApiError> {
    let tokenize = move |server: &Server| {
        let mut fields = body.fields()?;
        let request = TokenizeRequest {
            content: fields.require("content")?,
            add_special: fields.take("add_special")?,
            with_pieces: fields.take("with_pieces")?,
        };
        fields.finish()?;
        if request.content.len() > MOST {
            let problem = format!("has more than {MOST} bytes");
            return Err(ApiError::field("content", problem).coded("invalid_value"));
        }
        let model = &server.model;
        let mut tokens = model.tokenizer.encode(&request.content)?;
        if request.add_special == Some(true) {
            tokens = raw_prompt(&model.facts, tokens);
        }
        let piece = |&id: &u32| match request.with_pieces {
            Some(true) => {
                let bytes = model.tokenizer.token_bytes(id).unwrap_or_default();
                Token::Piece { id, piece: String::from_utf8_lossy(&bytes).into_owned() }
            }
            _ => Token::Id(id),
        };
        Ok(Json(Tokens { tokens: tokens.iter().map(piece).collect() }))
    };
    server.work(tokenize).await
}

/// Makes text of tokens.
#[utoipa::path(
    post, path = "/detokenize", request_body = DetokenizeRequest,
    responses((status = 200, body = Text), (status = 400, body = ErrorBody, description = "A field is wrong"))
)]
pub(crate) async fn detokenize(State(server): State<Shared>, body: Body) -> Result<Json<Text>, ApiError> {
    let detokenize = move |server: &Server| {
        let mut fields = body.fields()?;
        let DetokenizeRequest { tokens } = DetokenizeRequest { tokens: fields.require("tokens")? };
        fields.finish()?;
        if tokens.len() > MOST {
            let problem = format!("has more than {MOST} tokens");
            return Err(ApiError::field("tokens", problem).coded("invalid_value"));
        }
        let model = &server.model;
        let vocab_size = model.facts.vocab_size;
        match tokens.iter().position(|&id| id as usize >= vocab_size) {
            Some(index) => {
                let unknown = RequestError::UnknownToken { index, id: tokens[index], vocab_size };
                Err(ApiError::from(unknown).at(format!("tokens[{index}]")))
            }
            None => Ok(Json(Text { content: model.tokenizer.decode(&tokens, SpecialText::Keep) })),
        }
    };
    server.work(detokenize).await
}

/// Shows what the model would read.
#[utoipa::path(
    post, path = "/apply-template", request_body = TemplateRequest,
    responses((status = 200, body = Rendered), (status = 400, body = ErrorBody, description = "A field is wrong"))
)]
pub(crate) async fn apply_template(
    State(server): State<Shared>,
    body: Body,
) -> Result<Json<Rendered>, ApiError> {
    let render = move |server: &Server| {
        let mut fields = body.fields()?;
        let request = TemplateRequest {
            messages: fields.require("messages")?,
            chat_template_kwargs: take_variables(&mut fields)?,
            add_generation_prompt: fields.take("add_generation_prompt")?,
            tools: Tools::take(&mut fields, true)?,
        };
        fields.finish()?;
        let messages = messages(request.messages, &server.model.reading)?;
        let tools = request.tools.as_ref().map(Tools::for_template);
        let rendering = Rendering {
            tools: tools.as_deref(),
            variables: request.chat_template_kwargs.as_ref(),
            is_complete: request.add_generation_prompt == Some(false),
        };
        Ok(Json(Rendered { prompt: server.model.render(&messages, &rendering)? }))
    };
    server.work(render).await
}
