//! Right answers counted, by task and in all.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Shares of right answers, 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Of all questions.
    pub total: f64,
    /// Of each task's.
    pub by_task: BTreeMap<String, f64>,
}

/// How many answers there were, and how many were right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Right answers.
    pub right: usize,
    /// Questions.
    pub asked: usize,
}

/// What has been answered so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Marks {
    by_task: Vec<(String, Tally)>,
}

impl Tally {
    /// Right answers of all; 0 where nothing was asked.
    pub fn share(self) -> f64 {
        if self.asked == 0 { 0.0 } else { self.right as f64 / self.asked as f64 }
    }

    fn count(&mut self, is_right: bool) {
        self.asked += 1;
        self.right += usize::from(is_right);
    }
}

impl Marks {
    /// Counts an answer to a question of `task`.
    pub fn count(&mut self, task: &str, is_right: bool) {
        match self.by_task.iter_mut().find(|(known, _)| known == task) {
            Some((_, tally)) => tally.count(is_right),
            None => {
                let mut tally = Tally::default();
                tally.count(is_right);
                self.by_task.push((task.to_owned(), tally));
            }
        }
    }

    /// Each task's, in the order they came up.
    pub fn by_task(&self) -> impl Iterator<Item = (&str, Tally)> {
        self.by_task.iter().map(|(task, tally)| (task.as_str(), *tally))
    }

    /// Over all tasks.
    pub fn total(&self) -> Tally {
        let tallies = self.by_task.iter().map(|(_, tally)| tally);
        tallies.fold(Tally::default(), |sum, tally| Tally {
            right: sum.right + tally.right,
            asked: sum.asked + tally.asked,
        })
    }

    /// As shares.
    pub fn scores(&self) -> Scores {
        let by_task = self.by_task().map(|(task, tally)| (task.to_owned(), tally.share())).collect();
        Scores { total: self.total().share(), by_task }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_shares_by_task_and_of_all_questions() {
        let mut marks = Marks::default();
        for (task, is_right) in [("b", true), ("a", false), ("b", false), ("b", true)] {
            marks.count(task, is_right);
        }
        assert_eq!(marks.by_task().map(|(task, _)| task).collect::<Vec<_>>(), ["b", "a"]);
        let scores = marks.scores();
        assert_eq!((scores.total, scores.by_task["a"]), (0.5, 0.0));
        assert!((scores.by_task["b"] - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(Marks::default().scores().total, 0.0);
    }
}
