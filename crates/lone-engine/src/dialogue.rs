//! A conversation turn by turn, fed to a session so that every turn costs only the tokens it adds.
//!
//! The chat template renders the whole conversation each time. What of that text was tokenized before keeps its tokens,
//! those the model chose included, so the session finds its own history in front of the new turn. Where a template
//! rewrites earlier turns, the text and its tokens part there, and the session goes back to the place.

mod transcript;

use lone_lfm::{ChatTemplate, Conversation, Tokenizer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::DialogueError;
use transcript::Transcript;

/// More answers than anybody waits for.
const MOST_ANSWERS: u64 = 1 << 48;

/// What was said so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Dialogue {
    system: Option<String>,
    exchanges: Vec<Exchange>,
    answers: u64,
    transcript: Transcript,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Exchange {
    user: String,
    answer: String,
}

/// A user's turn that waits for its answer. Until [`Dialogue::record`] the dialogue does not know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    user: String,
    text: String,
    tokens: Vec<u32>,
    new_tokens: usize,
}

impl Dialogue {
    /// Before the first turn.
    pub fn new(system: Option<String>) -> Self {
        Dialogue { system, ..Dialogue::default() }
    }

    /// What the model is told before the conversation.
    pub fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    /// Tells the model something else before the conversation, which stays; its tokens do not.
    pub fn set_system(&mut self, system: Option<String>) {
        if system != self.system {
            self.system = system;
            self.transcript = Transcript::default();
        }
    }

    /// The tokens of what was said, as prompts and answers had them; fewer where something before them has changed.
    pub fn tokens(&self) -> &[u32] {
        self.transcript.tokens()
    }

    /// How many questions stand with their answers.
    pub fn turns(&self) -> usize {
        self.exchanges.len()
    }

    /// How many answers there were since the first turn or the last reset, those taken back included.
    pub fn answers(&self) -> u64 {
        self.answers
    }

    /// Refuses what a file may say and no conversation comes to.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.answers > MOST_ANSWERS {
            return Err(format!("it counts {} answers", self.answers));
        }
        Ok(())
    }

    /// The prompt in which `user` says something next.
    ///
    /// # Errors
    /// [`DialogueError`] if the template does not take the conversation, or the text cannot be tokenized.
    pub fn ask(
        &self,
        template: &ChatTemplate,
        tokenizer: &Tokenizer,
        user: String,
    ) -> Result<Asked, DialogueError> {
        let text = template.render(&Conversation::new(&self.messages(&user)))?;
        let (kept, rest) = self.transcript.split(&text);
        let added = tokenizer.encode(rest)?;
        Ok(Asked { tokens: [kept, &added].concat(), new_tokens: added.len(), user, text })
    }

    /// Takes down the answer to `asked`: `token_ids`, of which one of `stop_tokens` at the end belongs to the template.
    pub fn record(&mut self, asked: Asked, tokenizer: &Tokenizer, token_ids: &[u32], stop_tokens: &[u32]) {
        let said = match token_ids.split_last() {
            Some((last, before)) if stop_tokens.contains(last) => before,
            _ => token_ids,
        };
        let answer = tokenizer.decode(said, lone_lfm::SpecialText::Keep);
        self.transcript.replace(asked.text, asked.tokens);
        self.transcript.push(&answer, said);
        self.exchanges.push(Exchange { user: asked.user, answer });
        self.answers += 1;
    }

    /// Takes the last question and its answer back, and returns the question; `None` if there is none.
    pub fn undo(&mut self) -> Option<String> {
        let Exchange { user, .. } = self.exchanges.pop()?;
        self.transcript.take_back();
        Some(user)
    }

    /// Forgets all that was said, but not what the model is told first.
    pub fn reset(&mut self) {
        *self = Dialogue::new(self.system.take());
    }

    fn messages(&self, user: &str) -> Vec<Value> {
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let system = self.system.iter().map(|text| message("system", text));
        let said = self
            .exchanges
            .iter()
            .flat_map(|exchange| [message("user", &exchange.user), message("assistant", &exchange.answer)]);
        system.chain(said).chain([message("user", user)]).collect()
    }
}

impl Asked {
    /// The whole prompt.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// How many of its last tokens were not in the conversation before.
    pub fn new_tokens(&self) -> usize {
        self.new_tokens
    }
}
