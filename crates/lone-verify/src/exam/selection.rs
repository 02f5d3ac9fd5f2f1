//! Which questions of an exam are asked.

use super::{Exam, ExamError, Question};

/// A choice of questions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Selection {
    /// Only questions of these tasks; of all where none is named.
    pub tasks: Vec<String>,
    /// How many of them.
    pub amount: Amount,
    /// Which of them, where they are not all asked.
    pub seed: u64,
}

/// How many questions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Amount {
    /// All.
    #[default]
    All,
    /// So many at most.
    Limit(usize),
    /// This share, from 0 to 1; at least one question.
    Fraction(f64),
}

impl Exam {
    /// The questions chosen by `selection`, in their order and at even distances, so that every task has its share.
    ///
    /// # Errors
    /// [`ExamError::NoSuchTask`].
    pub fn select(&self, selection: &Selection) -> Result<Vec<&Question>, ExamError> {
        if let Some(unknown) = selection.tasks.iter().find(|task| !self.tasks().contains(&task.as_str())) {
            let known = self.tasks().join(", ");
            return Err(ExamError::NoSuchTask { task: unknown.clone(), known });
        }
        let is_named = |task: &String| selection.tasks.is_empty() || selection.tasks.contains(task);
        let named: Vec<&Question> =
            self.questions.iter().filter(|question| is_named(&question.task)).collect();
        let chosen = spread(selection.amount.of(named.len()), named.len(), selection.seed);
        Ok(chosen.map(|index| named[index]).collect())
    }

    /// The tasks there are questions of, in their order.
    fn tasks(&self) -> Vec<&str> {
        let mut tasks: Vec<&str> = Vec::new();
        for question in &self.questions {
            if !tasks.contains(&question.task.as_str()) {
                tasks.push(&question.task);
            }
        }
        tasks
    }
}

impl Amount {
    fn of(self, all: usize) -> usize {
        match self {
            Amount::All => all,
            Amount::Limit(limit) => limit.min(all),
            Amount::Fraction(fraction) => ((fraction * all as f64).round() as usize).clamp(1, all),
        }
    }
}

/// `count` of the indices below `all`, at even distances. The seed says how far within the first distance they begin:
/// seeds that follow each other begin far apart.
fn spread(count: usize, all: usize, seed: u64) -> impl Iterator<Item = usize> {
    // The golden ratio, as a fraction of 2^64.
    let begin = u128::from(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (0..count).map(move |i| ((((i as u128) << 64 | begin) * all as u128 / count as u128) >> 64) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exam() -> Exam {
        let question = |i: usize| Question {
            task: ["first", "second"][i / 10].to_owned(),
            messages: Vec::new(),
            tools: None,
            answer: i.to_string(),
        };
        Exam { transformers_f32: None, questions: (0..20).map(question).collect() }
    }

    fn chosen(selection: &Selection) -> Vec<usize> {
        let exam = exam();
        let questions = exam.select(selection).unwrap();
        questions.iter().map(|question| question.answer.parse().unwrap()).collect()
    }

    #[test]
    fn a_share_is_spread_over_the_exam() {
        let quarter = Selection { amount: Amount::Fraction(0.25), ..Selection::default() };
        assert_eq!(chosen(&quarter), [0, 4, 8, 12, 16]);
        assert_eq!(chosen(&Selection { seed: 1, ..quarter.clone() }), [2, 6, 10, 14, 18]);
        assert_eq!(chosen(&Selection { seed: u64::MAX, ..quarter }).len(), 5);
        let few = |amount| chosen(&Selection { amount, ..Selection::default() });
        assert_eq!(few(Amount::Limit(3)), [0, 6, 13]);
        assert_eq!(few(Amount::Fraction(1e-9)), [0]);
        for all in [Amount::All, Amount::Limit(99), Amount::Fraction(1.0)] {
            assert_eq!(few(all), (0..20).collect::<Vec<_>>());
        }
    }

    #[test]
    fn tasks_are_chosen_by_name() {
        let second =
            Selection { tasks: vec!["second".into()], amount: Amount::Limit(2), ..Selection::default() };
        assert_eq!(chosen(&second), [10, 15]);
        let third = Selection { tasks: vec!["third".into()], ..Selection::default() };
        let error = exam().select(&third).unwrap_err().to_string();
        assert_eq!(error, "the exam has no task `third`; its tasks are first, second");
    }
}
