//! Marks, for people and for programs.

use lone_verify::{Answer, Marks, Question, Scores, Tally};
use serde::Serialize;

use crate::failure::Failure;
use crate::ui::Ui;

/// How an exam went.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Shares of right answers, 0 to 1.
    #[serde(flatten)]
    scores: Scores,
    model: String,
    backend: &'static str,
    questions: usize,
    mistakes: Vec<Mistake>,
    #[serde(skip)]
    by_task: Vec<(String, Tally)>,
    #[serde(skip)]
    total: Tally,
}

/// A question that was answered wrongly.
#[derive(Debug, Serialize)]
pub(super) struct Mistake {
    task: String,
    expected: String,
    found: String,
}

impl Mistake {
    pub(super) fn new(question: &Question, answer: Answer) -> Self {
        Mistake { task: question.task.clone(), expected: question.answer.clone(), found: answer.text }
    }
}

impl Report {
    pub(super) fn new(model: String, backend: &'static str, marks: &Marks, mistakes: Vec<Mistake>) -> Self {
        Report {
            scores: marks.scores(),
            model,
            backend,
            questions: marks.total().asked,
            mistakes,
            by_task: marks.by_task().map(|(task, tally)| (task.to_owned(), tally)).collect(),
            total: marks.total(),
        }
    }

    /// A table of tasks, beside what transformers scored on the whole exam where that is known.
    pub(super) fn print(&self, transformers: Option<&Scores>, ui: &Ui) -> Result<(), Failure> {
        ui.heading(format_args!("{} on {}", self.model, self.backend))?;
        if transformers.is_some() {
            ui.line(format_args!("  {:<16} {:>11} {:>8}   transformers, f32", "", "right", "share"))?;
        } else {
            ui.line(format_args!("  {:<16} {:>11} {:>8}", "", "right", "share"))?;
        }
        for (task, tally) in &self.by_task {
            let known = transformers.and_then(|scores| scores.by_task.get(task).copied());
            ui.line(row(task, *tally, known))?;
        }
        ui.line(row("total", self.total, transformers.map(|scores| scores.total)))
    }
}

fn row(name: &str, tally: Tally, transformers: Option<f64>) -> String {
    let right = format!("{} of {}", tally.right, tally.asked);
    let transformers = transformers.map_or_else(String::new, |share| format!("   {share:.4}"));
    format!("  {name:<16} {right:>11} {:>8.4}{transformers}", tally.share())
}
