//! Questions with one right answer each, and how many of them a model answers rightly.
//!
//! An answer is right if it is the expected text exactly: special tokens kept, the token that ends the turn removed.

mod examinee;
mod marks;
mod selection;

use std::path::{Path, PathBuf};

use lone_engine::{EngineError, RequestError};
use lone_lfm::{
    ChatError, ChatTemplate, Conversation, ReferenceError, SpecialText, Tokenizer, TokenizerError,
};
use serde::Deserialize;
use serde_json::Value;

use crate::Watch;
pub use examinee::{BundleExaminee, CheckpointExaminee, Examinee, Paper};
pub use marks::{Marks, Scores, Tally};
pub use selection::{Amount, Selection};

/// A file of questions.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with `questions`")]
pub struct Exam {
    /// What transformers scored in f32, where the file says it.
    pub transformers_f32: Option<Scores>,
    /// The questions; at least one.
    pub questions: Vec<Question>,
}

/// A conversation that waits for its answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(expecting = "an object with `task`, `messages` and `answer`")]
pub struct Question {
    /// The kind of question.
    pub task: String,
    /// The conversation.
    pub messages: Vec<Value>,
    /// Tools that the model may call.
    #[serde(default)]
    pub tools: Option<Vec<Value>>,
    /// The right answer.
    pub answer: String,
}

/// What was answered to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Whether it is the right one.
    pub is_right: bool,
}

/// Why an exam cannot be taken.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ExamError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is not an exam: {source}", path.display())]
    Damaged { path: PathBuf, source: serde_json::Error },
    #[error("{} has no questions", path.display())]
    Empty { path: PathBuf },
    #[error("the exam has no task `{task}`; its tasks are {known}")]
    NoSuchTask { task: String, known: String },
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error(transparent)]
    Chat(#[from] ChatError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error("question {number}, of task `{task}`: {source}")]
    Question { number: usize, task: String, source: Box<ExamError> },
    #[error("cancelled")]
    Cancelled,
}

impl ExamError {
    /// The same error as that of `question`, the `number`th that was asked, counting from 1.
    #[must_use]
    pub fn of_question(self, number: usize, question: &Question) -> Self {
        match self {
            ExamError::Cancelled => self,
            _ => ExamError::Question { number, task: question.task.clone(), source: Box::new(self) },
        }
    }
}

impl Exam {
    /// Reads an exam.
    ///
    /// # Errors
    /// [`ExamError`], naming the file and the place in it.
    pub fn open(path: &Path) -> Result<Self, ExamError> {
        let text = std::fs::read(path).map_err(|source| ExamError::Read { path: path.into(), source })?;
        let exam: Exam = serde_json::from_slice(&text)
            .map_err(|source| ExamError::Damaged { path: path.into(), source })?;
        if exam.questions.is_empty() {
            return Err(ExamError::Empty { path: path.into() });
        }
        Ok(exam)
    }
}

/// Puts questions to models of one tokenizer and chat template.
#[derive(Debug)]
pub struct Examiner {
    tokenizer: Tokenizer,
    template: ChatTemplate,
    stop_tokens: Vec<u32>,
}

impl Examiner {
    /// With the tokenizer and the template in the directory `dir`, of a bundle or a checkpoint. Any of `stop_tokens` ends
    /// an answer.
    ///
    /// # Errors
    /// [`ExamError::Tokenizer`], [`ExamError::Chat`].
    pub fn open(dir: &Path, stop_tokens: Vec<u32>) -> Result<Self, ExamError> {
        Ok(Examiner { tokenizer: Tokenizer::open(dir)?, template: ChatTemplate::open(dir)?, stop_tokens })
    }

    /// The tokens of `question`, up to where its answer begins; at least one.
    ///
    /// # Errors
    /// [`ExamError`] if it cannot be put.
    pub fn prompt(&self, question: &Question) -> Result<Vec<u32>, ExamError> {
        let conversation =
            Conversation { tools: question.tools.as_deref(), ..Conversation::new(&question.messages) };
        let prompt = self.tokenizer.encode(&self.template.render(&conversation)?)?;
        if prompt.is_empty() {
            return Err(EngineError::from(RequestError::EmptyPrompt).into());
        }
        Ok(prompt)
    }

    /// Has `examinee` answer `question`.
    ///
    /// # Errors
    /// [`ExamError`] if the question cannot be put, or as the examinee has it. A wrong answer is no error.
    pub fn ask(
        &self,
        question: &Question,
        examinee: &mut dyn Examinee,
        watch: &dyn Watch,
    ) -> Result<Answer, ExamError> {
        let paper = Paper {
            prompt: &self.prompt(question)?,
            expected: &self.tokenizer.encode(&question.answer)?,
            // A token has at least one byte, but for the one that ends the turn.
            most_tokens: question.answer.len() + 1,
            stop_tokens: &self.stop_tokens,
        };
        let mut tokens = examinee.answer(&paper, watch)?;
        tokens.pop_if(|last| self.stop_tokens.contains(last));
        let text = self.tokenizer.decode(&tokens, SpecialText::Keep);
        Ok(Answer { is_right: text == question.answer, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_exam_is_named_with_the_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let refusal = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            Exam::open(file.path()).unwrap_err().to_string()
        };
        assert!(refusal(r#"{"questions": []}"#).ends_with("has no questions"));
        let message = refusal(r#"{"questions": [{"task": "a", "messages": []}]}"#);
        assert!(message.contains("is not an exam: missing field `answer` at line 1"), "{message}");
        for (text, expected) in [
            ("[]", "expected an object with `questions` at line 1"),
            (r#"{"questions": ["a"]}"#, "expected an object with `task`, `messages` and `answer` at line 1"),
        ] {
            let message = refusal(text);
            assert!(message.contains(expected), "{message}");
        }
    }
}
