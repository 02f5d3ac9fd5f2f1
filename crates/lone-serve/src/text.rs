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
use crate::request::{Fields, Tools, messages, take_variables};
use crate::state::Shared;

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
pub(crate) async fn tokenize(
    State(server): State<Shared>,
    mut fields: Fields,
) -> Result<Json<Tokens>, ApiError> {
    let request = TokenizeRequest {
        content: fields.require("content")?,
        add_special: fields.take("add_special")?,
        with_pieces: fields.take("with_pieces")?,
    };
    fields.finish()?;
    if request.content.len() > MOST {
        return Err(ApiError::field("content", format!("has more than {MOST} bytes")).coded("invalid_value"));
    }
    server
        .work(move |server| {
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
        })
        .await
}

/// Makes text of tokens.
#[utoipa::path(
    post, path = "/detokenize", request_body = DetokenizeRequest,
    responses((status = 200, body = Text), (status = 400, body = ErrorBody, description = "A field is wrong"))
)]
pub(crate) async fn detokenize(
    State(server): State<Shared>,
    mut fields: Fields,
) -> Result<Json<Text>, ApiError> {
    let DetokenizeRequest { tokens } = DetokenizeRequest { tokens: fields.require("tokens")? };
    fields.finish()?;
    if tokens.len() > MOST {
        return Err(ApiError::field("tokens", format!("has more than {MOST} tokens")).coded("invalid_value"));
    }
    server
        .work(move |server| {
            let model = &server.model;
            let vocab_size = model.facts.vocab_size;
            match tokens.iter().position(|&id| id as usize >= vocab_size) {
                Some(index) => {
                    Err(RequestError::UnknownToken { index, id: tokens[index], vocab_size }.into())
                }
                None => Ok(Json(Text { content: model.tokenizer.decode(&tokens, SpecialText::Keep) })),
            }
        })
        .await
}

/// Shows what the model would read.
#[utoipa::path(
    post, path = "/apply-template", request_body = TemplateRequest,
    responses((status = 200, body = Rendered), (status = 400, body = ErrorBody, description = "A field is wrong"))
)]
pub(crate) async fn apply_template(
    State(server): State<Shared>,
    mut fields: Fields,
) -> Result<Json<Rendered>, ApiError> {
    let request = TemplateRequest {
        messages: fields.require("messages")?,
        chat_template_kwargs: take_variables(&mut fields)?,
        add_generation_prompt: fields.take("add_generation_prompt")?,
    };
    let tools = Tools::take(&mut fields, true)?;
    fields.finish()?;
    server
        .work(move |server| {
            let messages = messages(request.messages, &server.model.reading)?;
            let tools = tools.as_ref().map(Tools::for_template);
            let rendering = Rendering {
                tools: tools.as_deref(),
                variables: request.chat_template_kwargs.as_ref(),
                is_complete: request.add_generation_prompt == Some(false),
            };
            Ok(Json(Rendered { prompt: server.model.render(&messages, &rendering)? }))
        })
        .await
}
