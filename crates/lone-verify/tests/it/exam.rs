//! Exams: the score in fp16 is that in f32, on the CPU and on the simulated Neural Engine.

use std::cell::Cell;

use lone_anesim::{AneSim, Faults};
use lone_convert::ConvertOptions;
use lone_engine::{LoadOptions, Runtime};
use lone_mil::Backend;
use lone_verify::{
    Amount, BundleExaminee, CheckpointExaminee, Exam, ExamError, Examinee, Examiner, Marks, Question,
    Selection, Watch,
};

use crate::support::{Converted, MODELS, cpu, model};

/// How many points of 100 an exam may be off.
const MOST_POINTS_OFF: f64 = 0.5;

/// A model, its bundle and its exam.
struct Candidate {
    converted: Converted,
    exam: Exam,
    examiner: Examiner,
}

impl Candidate {
    /// The context holds the longest question with its answer, and little more: the interpreter looks at all of it.
    fn new(name: &str) -> Self {
        let options = ConvertOptions { ctx: vec![256], prefill: vec![16], ..ConvertOptions::default() };
        Candidate {
            converted: Converted::with(name, &options),
            exam: Exam::open(&model(name).join("exam.json")).unwrap(),
            examiner: Examiner::open(&model(name), vec![2, 7]).unwrap(),
        }
    }

    /// Every fourth question.
    fn quarter(&self) -> Vec<&Question> {
        self.exam.select(&Selection { amount: Amount::Fraction(0.25), ..Selection::default() }).unwrap()
    }

    fn marks_on(&self, backend: &dyn Backend, questions: &[&Question]) -> Marks {
        let mut runtime = Runtime::load(&self.converted.bundle(), backend, &LoadOptions::default()).unwrap();
        self.marks(&mut BundleExaminee::new(&mut runtime).unwrap(), questions)
    }

    fn marks_in_f32(&self, questions: &[&Question]) -> Marks {
        self.marks(&mut CheckpointExaminee::new(&self.converted.checkpoint), questions)
    }

    fn marks(&self, examinee: &mut dyn Examinee, questions: &[&Question]) -> Marks {
        let mut marks = Marks::default();
        for question in questions {
            marks.count(&question.task, self.examiner.ask(question, examinee, &()).unwrap().is_right);
        }
        marks
    }
}

fn check(name: &str, expected: f64, marks: &Marks) {
    let points_off = 100.0 * (expected - marks.scores().total).abs();
    assert!(points_off <= MOST_POINTS_OFF, "{name}: {expected} in f32, and {:?}", marks.scores());
}

/// What transformers scored in f32 is in the file; so the checkpoint itself need not sit it.
fn check_on_cpu(name: &str) {
    let candidate = Candidate::new(name);
    let questions: Vec<&Question> = candidate.exam.questions.iter().collect();
    let marks = candidate.marks_on(&cpu(), &questions);
    assert_eq!(marks.total().asked, 400);
    check(name, candidate.exam.transformers_f32.as_ref().unwrap().total, &marks);
}

fn check_on_ane_sim(name: &str) {
    let candidate = Candidate::new(name);
    let questions = candidate.quarter();
    assert_eq!(questions.len(), 100);
    let marks = candidate.marks_on(&AneSim::new(Faults::M1), &questions);
    check(name, candidate.marks_in_f32(&questions).scores().total, &marks);
}

#[test]
fn tiny_lfm2_passes_its_exam_on_the_cpu_as_transformers_does_in_f32() {
    check_on_cpu("tiny-lfm2");
}

#[test]
fn tiny_lfm3_passes_its_exam_on_the_cpu_as_transformers_does_in_f32() {
    check_on_cpu("tiny-lfm3");
}

#[test]
fn tiny_lfm2_passes_a_quarter_of_its_exam_on_the_simulated_engine_as_in_f32() {
    check_on_ane_sim("tiny-lfm2");
}

#[test]
fn tiny_lfm3_passes_a_quarter_of_its_exam_on_the_simulated_engine_as_in_f32() {
    check_on_ane_sim("tiny-lfm3");
}

/// The checkpoint guesses right answers whole, the bundle goes token by token.
#[test]
fn the_checkpoint_in_f32_answers_as_its_bundle_does() {
    for name in MODELS {
        let candidate = Candidate::new(name);
        let some = Selection { amount: Amount::Limit(25), seed: 1, ..Selection::default() };
        let mut runtime =
            Runtime::load(&candidate.converted.bundle(), &cpu(), &LoadOptions::default()).unwrap();
        let mut answers = Vec::new();
        for question in candidate.exam.select(&some).unwrap() {
            let mut bundle = BundleExaminee::new(&mut runtime).unwrap();
            let of_bundle = candidate.examiner.ask(question, &mut bundle, &()).unwrap();
            let mut checkpoint = CheckpointExaminee::new(&candidate.converted.checkpoint);
            answers.push((candidate.examiner.ask(question, &mut checkpoint, &()).unwrap(), of_bundle));
        }
        let different = answers.iter().filter(|(a, b)| a != b).count();
        assert!(different <= 1, "{name}: {answers:#?}");
    }
}

/// Has enough after it was asked so many times.
struct Patience(Cell<usize>);

impl Watch for Patience {
    fn is_cancelled(&self) -> bool {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        left == 0
    }
}

#[test]
fn an_answer_that_nobody_waits_for_is_broken_off() {
    let candidate = Candidate::new("tiny-lfm3");
    let question = &candidate.exam.questions[0];
    let outcome = |examinee: &mut dyn Examinee, patience| {
        candidate
            .examiner
            .ask(question, examinee, &Patience(Cell::new(patience)))
            .map(|answer| answer.is_right)
    };
    let mut runtime = Runtime::load(&candidate.converted.bundle(), &cpu(), &LoadOptions::default()).unwrap();
    let mut bundle = BundleExaminee::new(&mut runtime).unwrap();
    assert!(matches!(outcome(&mut bundle, 3), Err(ExamError::Cancelled)));
    assert!(matches!(outcome(&mut bundle, usize::MAX), Ok(true)), "what was broken off is forgotten");
    let mut checkpoint = CheckpointExaminee::new(&candidate.converted.checkpoint);
    assert!(matches!(outcome(&mut checkpoint, 0), Err(ExamError::Cancelled)));
}
