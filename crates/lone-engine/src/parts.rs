//! An answer's text taken apart as it streams: reasoning, calls of tools, and the rest.
//!
//! Reasoning stands between `<think>` and `</think>` at the very beginning; calls of tools stand between marks
//! anywhere after it. Text that may turn out to be either is held back; what looked like a call and was none is
//! content, marks and all. How the text came in pieces makes no difference to what comes out, put together.

use crate::tools::{Block, Tool, ToolCall, ToolMarks, read_block};

const THINK: &str = "<think>";
const END_OF_THINK: &str = "</think>";

/// A part of an answer, or a piece of one; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// What the model thinks before it answers.
    Reasoning(String),
    /// The answer.
    Content(String),
    /// Calls that stood in one block.
    Calls(Vec<ToolCall>),
}

/// Takes one answer apart.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Absent if calls are not looked for.
    marks: Option<ToolMarks>,
    tools: Vec<Tool>,
    state: State,
    /// Text that is not let out yet.
    held: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but space so far.
    Beginning,
    /// Nothing so far of what is all calls or all content.
    Held,
    Reasoning {
        has_begun: bool,
    },
    /// Between reasoning and content, which space does not belong to.
    Between,
    Content,
    /// Behind an opening mark.
    Calls,
}

impl Parts {
    /// An answer whose calls of `tools`, if any are looked for, stand between the marks.
    pub fn new(calls: Option<(ToolMarks, Vec<Tool>)>) -> Self {
        let (marks, tools) = calls.map_or((None, Vec::new()), |(marks, tools)| (Some(marks), tools));
        Parts { marks, tools, state: State::Beginning, held: String::new() }
    }

    /// Says that the prompt has opened the reasoning already.
    #[must_use]
    pub fn in_reasoning(mut self) -> Self {
        self.state = State::Reasoning { has_begun: false };
        self
    }

    /// Says that the answer is held to a form: that it begins with its calls, or else has none, whatever its strings say.
    #[must_use]
    pub fn held(mut self) -> Self {
        self.state = State::Held;
        self
    }

    /// Whether what comes next belongs to the reasoning, as far as can be told.
    pub fn is_reasoning(&self) -> bool {
        matches!(self.state, State::Reasoning { .. })
    }

    /// Takes more text and gives the parts that are certain now.
    pub fn push(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        let mut parts = Vec::new();
        while self.advance(&mut parts) {}
        parts
    }

    /// The rest, when no more text comes.
    pub fn finish(mut self) -> Vec<Part> {
        let mut parts = Vec::new();
        let rest = std::mem::take(&mut self.held);
        match self.state {
            State::Reasoning { .. } => add(&mut parts, Part::Reasoning(rest.trim_end().to_owned())),
            State::Between => {}
            State::Beginning | State::Held | State::Content => add(&mut parts, Part::Content(rest)),
            State::Calls => {
                let marks = self.marks.as_ref().expect("calls are looked for");
                // An answer may end before its closing mark, and still have said all of its calls.
                match read_block(&format!("{rest}{}", marks.end), &marks.end, &self.tools) {
                    Block::Calls { calls, .. } => add(&mut parts, Part::Calls(calls)),
                    Block::Incomplete | Block::Malformed => {
                        add(&mut parts, Part::Content(format!("{}{rest}", marks.start)));
                    }
                }
            }
        }
        parts
    }

    /// Moves on as far as one state goes; whether the next may go further.
    fn advance(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.state {
            State::Beginning => self.begin(),
            State::Held => self.begin_held(),
            State::Reasoning { has_begun } => self.reason(has_begun, parts),
            State::Between => {
                self.held = self.held.trim_start().to_owned();
                self.go_on(State::Content, !self.held.is_empty())
            }
            State::Content => self.tell(parts),
            State::Calls => self.call(parts),
        }
    }

    fn go_on(&mut self, state: State, when: bool) -> bool {
        if when {
            self.state = state;
        }
        when
    }

    fn begin(&mut self) -> bool {
        let text = self.held.trim_start();
        if let Some(rest) = text.strip_prefix(THINK) {
            self.held = rest.to_owned();
            return self.go_on(State::Reasoning { has_begun: false }, true);
        }
        self.go_on(State::Content, !THINK.starts_with(text))
    }

    fn begin_held(&mut self) -> bool {
        let Some(marks) = &self.marks else { return self.go_on(State::Content, true) };
        let may_call = marks.start.starts_with(&self.held) || self.held.starts_with(&marks.start);
        let is_certain = !may_call || self.held.len() >= marks.start.len();
        if !may_call {
            self.marks = None;
        }
        self.go_on(State::Content, is_certain)
    }

    fn reason(&mut self, has_begun: bool, parts: &mut Vec<Part>) -> bool {
        if !has_begun {
            self.held = self.held.trim_start().to_owned();
        }
        if let Some(end) = self.held.find(END_OF_THINK) {
            let reasoning = self.held[..end].trim_end().to_owned();
            self.held.drain(..end + END_OF_THINK.len());
            add(parts, Part::Reasoning(reasoning));
            return self.go_on(State::Between, true);
        }
        // Space before the end does not belong to it, so it waits for what follows.
        let certain = self.held.len() - partial_length(&self.held, END_OF_THINK);
        let certain = self.held[..certain].trim_end().len();
        let reasoning: String = self.held.drain(..certain).collect();
        self.state = State::Reasoning { has_begun: has_begun || !reasoning.is_empty() };
        add(parts, Part::Reasoning(reasoning));
        false
    }

    fn tell(&mut self, parts: &mut Vec<Part>) -> bool {
        let Some(marks) = &self.marks else {
            add(parts, Part::Content(std::mem::take(&mut self.held)));
            return false;
        };
        if let Some(at) = self.held.find(&marks.start) {
            let content = self.held[..at].to_owned();
            self.held.drain(..at + marks.start.len());
            add(parts, Part::Content(content));
            return self.go_on(State::Calls, true);
        }
        let certain = self.held.len() - partial_length(&self.held, &marks.start);
        add(parts, Part::Content(self.held.drain(..certain).collect()));
        false
    }

    fn call(&mut self, parts: &mut Vec<Part>) -> bool {
        let marks = self.marks.as_ref().expect("calls are looked for");
        let Some(at) = self.held.find(&marks.end) else { return false };
        let bytes = match read_block(&self.held, &marks.end, &self.tools) {
            Block::Incomplete => return false,
            Block::Calls { calls, bytes } => {
                add(parts, Part::Calls(calls));
                bytes
            }
            Block::Malformed => {
                let bytes = at + marks.end.len();
                add(parts, Part::Content(format!("{}{}", marks.start, &self.held[..bytes])));
                bytes
            }
        };
        self.held.drain(..bytes);
        self.go_on(State::Content, true)
    }
}

/// Adds a part unless it is empty, to the last one if that is of its kind.
fn add(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut(), part) {
        (_, Part::Content(text) | Part::Reasoning(text)) if text.is_empty() => {}
        (Some(Part::Content(last)), Part::Content(text))
        | (Some(Part::Reasoning(last)), Part::Reasoning(text)) => last.push_str(&text),
        (_, part) => parts.push(part),
    }
}

/// Length of the longest end of `text` that `mark` begins with, short of all of it.
fn partial_length(text: &str, mark: &str) -> usize {
    let starts = mark.char_indices().map(|(at, _)| at).skip(1);
    starts.filter(|&length| text.ends_with(&mark[..length])).last().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts() -> Parts {
        let marks = ToolMarks { start: "<|s|>".into(), end: "<|e|>".into() };
        Parts::new(Some((marks, Vec::new())))
    }

    /// What the pieces come to, as text with its kind in front.
    fn read(mut parts: Parts, pieces: &[&str]) -> String {
        let mut all = Vec::new();
        for piece in pieces {
            parts.push(piece).into_iter().for_each(|part| add(&mut all, part));
        }
        parts.finish().into_iter().for_each(|part| add(&mut all, part));
        let shown = all.iter().map(|part| match part {
            Part::Reasoning(text) => format!("R:{text};"),
            Part::Content(text) => format!("C:{text};"),
            Part::Calls(calls) => {
                calls.iter().map(|call| format!("{}{};", call.name, call.arguments)).collect()
            }
        });
        shown.collect()
    }

    #[test]
    fn calls_are_taken_out_of_the_text_around_them() {
        let table = [
            ("plain", "C:plain;"),
            ("Let me see. <|s|>[f(a=1)]<|e|> Done.", r#"C:Let me see. ;f{"a":1};C: Done.;"#),
            ("<|s|>[f(), g()]<|e|><|s|>h()<|e|>", "f{};g{};h{};"),
            (r#"<|s|>[f(a="<|e|><|s|>")]<|e|>"#, r#"f{"a":"<|e|><|s|>"};"#),
            ("<|s|>[f()]", "f{};"),
        ];
        for (text, expected) in table {
            assert_eq!(read(parts(), &[text]), expected, "{text}");
        }
    }

    #[test]
    fn a_malformed_call_stays_content_and_later_ones_are_read() {
        assert_eq!(read(parts(), &["<|s|>[f(<|e|> so"]), "C:<|s|>[f(<|e|> so;");
        assert_eq!(read(parts(), &["<|s|>nonsense!<|e|><|s|>[f()]<|e|>"]), "C:<|s|>nonsense!<|e|>;f{};");
        assert_eq!(read(parts(), &["a <|s|>[f(a=1"]), "C:a <|s|>[f(a=1;");
    }

    #[test]
    fn marks_are_text_where_calls_are_not_looked_for() {
        assert_eq!(read(Parts::new(None), &["<|s|>[f()]<|e|>"]), "C:<|s|>[f()]<|e|>;");
    }

    #[test]
    fn what_is_held_to_a_form_begins_with_its_calls_or_has_none() {
        let table = [
            (r#"{"a": "<|s|>[f()]<|e|>"}"#, r#"C:{"a": "<|s|>[f()]<|e|>"};"#),
            ("<|s|>[f()]<|e|>", "f{};"),
            ("<|s", "C:<|s;"),
        ];
        for (text, expected) in table {
            assert_eq!(read(parts().held(), &[text]), expected, "{text}");
            let pieces: Vec<String> = text.chars().map(String::from).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            assert_eq!(read(parts().held(), &pieces), expected, "{text}");
        }
    }

    #[test]
    fn reasoning_is_told_from_the_answer() {
        let table = [
            ("<think>\nhm, so\n</think>\n\nYes.", "R:hm, so;C:Yes.;"),
            ("\n<think>hm</think><|s|>[f()]<|e|>", "R:hm;f{};"),
            ("<think></think>Yes.", "C:Yes.;"),
            ("<think> cut sho", "R:cut sho;"),
            ("<thin", "C:<thin;"),
            ("No <think>x</think>", "C:No <think>x</think>;"),
            ("  spaced", "C:  spaced;"),
        ];
        for (text, expected) in table {
            assert_eq!(read(parts(), &[text]), expected, "{text}");
        }
        assert_eq!(read(parts().in_reasoning(), &["hm</think>Yes."]), "R:hm;C:Yes.;");
    }

    #[test]
    fn text_that_cannot_be_a_mark_is_let_out_at_once() {
        let mut parts = parts();
        assert_eq!(parts.push("Yes <"), [Part::Content("Yes ".into())]);
        assert_eq!(parts.push("b"), [Part::Content("<b".into())]);
        assert_eq!(parts.push("<|s|"), []);
        assert_eq!(parts.push(">[f("), []);
    }

    proptest! {
        #[test]
        fn how_the_text_is_cut_into_pieces_makes_no_difference(
            words in prop::collection::vec(prop::sample::select(vec![
                "<think>", "</think>", "<|s|>", "<|e|>", "[f(a='", "')]", "[g()]", " ", "\n", "x", "é", "<|", "<", ">",
            ]), 0..12),
            cuts in prop::collection::vec(0usize..80, 0..8),
        ) {
            let text = words.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(parts(), &pieces), read(parts(), &[&text]));
        }
    }
}
