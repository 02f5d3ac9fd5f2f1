//! A response in the making: items open and close as the model goes from thinking to speaking to calling.

use serde_json::{Value, json};

use super::reply::{ContentPart, OutputItem, ResponseObject, usage};
use crate::chat::Piece;
use crate::identity::fresh;
use crate::reply::ToolCallDelta;
use crate::tally::Tally;

/// The response so far, and the item that is open.
#[derive(Debug)]
pub(super) struct Output {
    response: ResponseObject,
    open: Option<Open>,
}

/// An item that grows.
#[derive(Debug)]
struct Open {
    is_reasoning: bool,
    id: String,
    text: String,
}

impl Open {
    fn part(&self) -> ContentPart {
        match self.is_reasoning {
            true => ContentPart::ReasoningText { text: self.text.clone() },
            false => ContentPart::said(self.text.clone()),
        }
    }

    fn item(&self, status: &'static str, content: Vec<ContentPart>) -> OutputItem {
        let id = self.id.clone();
        match self.is_reasoning {
            true => OutputItem::Reasoning { id, summary: Vec::new(), content, status },
            false => OutputItem::Message { id, role: "assistant", content, status },
        }
    }

    /// What events about its text are called.
    fn text_event(&self, what: &str) -> String {
        let kind = if self.is_reasoning { "reasoning_text" } else { "output_text" };
        format!("response.{kind}.{what}")
    }
}

impl Output {
    pub(super) fn new(response: ResponseObject) -> Self {
        Output { response, open: None }
    }

    /// The events of the beginning.
    pub(super) fn begin(&self) -> Vec<Value> {
        vec![self.response.event("response.created"), self.response.event("response.in_progress")]
    }

    /// The events a piece of the answer makes.
    pub(super) fn add(&mut self, piece: Piece) -> Vec<Value> {
        let mut events = Vec::new();
        if let Some(text) = piece.delta.reasoning_content {
            self.add_text(true, &text, &mut events);
        }
        if let Some(text) = piece.delta.content {
            self.add_text(false, &text, &mut events);
        }
        for call in piece.delta.tool_calls {
            self.close(&mut events);
            self.add_call(call, &mut events);
        }
        if piece.finish_reason == Some("length") {
            self.response.status = "incomplete";
            self.response.incomplete_details = Some(json!({"reason": "max_output_tokens"}));
        }
        events
    }

    /// The last events.
    pub(super) fn end(&mut self, tally: &Tally, reasoning_tokens: usize) -> Vec<Value> {
        let mut events = Vec::new();
        if self.response.status == "in_progress" {
            self.response.status = "completed";
        }
        self.close(&mut events);
        self.response.usage = Some(usage(&tally.usage(reasoning_tokens)));
        self.response.timings = Some(tally.timings());
        events.push(self.response.event(&format!("response.{}", self.response.status)));
        events
    }

    /// The last event, when there will be no more.
    pub(super) fn fail(&mut self, message: &str) -> Vec<Value> {
        self.response.status = "failed";
        self.response.error = Some(json!({"code": "server_error", "message": message}));
        vec![self.response.event("response.failed")]
    }

    pub(super) fn into_response(self) -> ResponseObject {
        self.response
    }

    fn add_text(&mut self, is_reasoning: bool, text: &str, events: &mut Vec<Value>) {
        if self.open.as_ref().is_none_or(|open| open.is_reasoning != is_reasoning) {
            self.close(events);
            self.open(is_reasoning, events);
        }
        let index = self.response.output.len();
        let open = self.open.as_mut().expect("it was opened just now");
        open.text.push_str(text);
        let mut delta = json!({"type": open.text_event("delta"), "item_id": open.id, "output_index": index,
            "content_index": 0, "delta": text});
        if !is_reasoning {
            delta["logprobs"] = json!([]);
        }
        events.push(delta);
    }

    fn open(&mut self, is_reasoning: bool, events: &mut Vec<Value>) {
        let id = fresh(if is_reasoning { "rs_" } else { "msg_" });
        let open = Open { is_reasoning, id, text: String::new() };
        let index = self.response.output.len();
        let item = open.item("in_progress", Vec::new());
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": item}));
        events.push(json!({"type": "response.content_part.added", "item_id": open.id, "output_index": index,
            "content_index": 0, "part": open.part()}));
        self.open = Some(open);
    }

    fn close(&mut self, events: &mut Vec<Value>) {
        let Some(open) = self.open.take() else { return };
        let index = self.response.output.len();
        let mut done = json!({"type": open.text_event("done"), "item_id": open.id, "output_index": index,
            "content_index": 0, "text": open.text});
        if !open.is_reasoning {
            done["logprobs"] = json!([]);
        }
        events.push(done);
        events.push(json!({"type": "response.content_part.done", "item_id": open.id, "output_index": index,
            "content_index": 0, "part": open.part()}));
        // What was open when the answer was cut off is no more complete than the answer.
        let status = if self.response.status == "incomplete" { "incomplete" } else { "completed" };
        self.finish_item(open.item(status, vec![open.part()]), events);
    }

    fn add_call(&mut self, call: ToolCallDelta, events: &mut Vec<Value>) {
        let (id, index) = (fresh("fc_"), self.response.output.len());
        let item = |arguments: &str, status| OutputItem::FunctionCall {
            id: id.clone(),
            call_id: call.id.clone(),
            name: call.function.name.clone(),
            arguments: arguments.to_owned(),
            status,
        };
        let arguments = &call.function.arguments;
        events.push(json!({"type": "response.output_item.added", "output_index": index,
            "item": item("", "in_progress")}));
        events.push(
            json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": index,
            "delta": arguments}),
        );
        events.push(
            json!({"type": "response.function_call_arguments.done", "item_id": id, "output_index": index,
            "name": call.function.name, "arguments": arguments}),
        );
        self.finish_item(item(arguments, "completed"), events);
    }

    fn finish_item(&mut self, item: OutputItem, events: &mut Vec<Value>) {
        let index = self.response.output.len();
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
        self.response.output.push(item);
    }
}
