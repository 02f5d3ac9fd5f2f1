//! `lone eval`: marks, mistakes, and exams that cannot be taken.

use serde_json::{Value, json};

use crate::machine::{Machine, Outcome, model};

fn exam() -> String {
    model("tiny-lfm3/exam.json").to_str().unwrap().to_owned()
}

fn eval(machine: &Machine, exam: &str, flags: &[&str]) -> Outcome {
    machine.run(&[&["eval", "--model", "demo", "--exam", exam], flags].concat())
}

fn report(outcome: &Outcome) -> Value {
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    serde_json::from_str(&outcome.stdout).unwrap()
}

#[test]
fn a_quarter_of_the_exam_is_marked_by_task() {
    let marks = report(&eval(&Machine::new(), &exam(), &["--fraction", "0.25", "--json"]));
    assert_eq!(marks["questions"], 100);
    assert!(marks["total"].as_f64().unwrap() >= 0.97, "{marks}");
    let by_task = marks["by_task"].as_object().unwrap();
    assert_eq!(by_task.len(), 10, "a share of the exam has a share of every task");
    assert!(by_task.values().all(|share| (0.0..=1.0).contains(&share.as_f64().unwrap())));
}

#[test]
fn the_checkpoint_itself_answers_the_same() {
    let machine = Machine::new();
    let flags = ["--limit", "20", "--seed", "3", "--json"];
    let reference = report(&eval(&machine, &exam(), &[&flags[..], &["--reference"]].concat()));
    let bundle = report(&eval(&machine, &exam(), &flags));
    assert_eq!((&reference["total"], &reference["mistakes"]), (&bundle["total"], &bundle["mistakes"]));
    assert_eq!(reference["backend"], "the checkpoint in f32");
}

#[test]
fn a_table_shows_each_task_beside_what_transformers_scored() {
    let outcome = eval(&Machine::new(), &exam(), &["--tasks", "capital,add", "--limit", "6"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    insta::assert_snapshot!(outcome.stdout, @r"
    tiny-lfm3 on cpu
                             right    share   transformers, f32
      capital               3 of 3   1.0000   1.0000
      add                   3 of 3   1.0000   1.0000
      total                 6 of 6   1.0000   0.9950
    ");
}

#[test]
fn wrong_answers_are_listed_with_what_was_said_instead() {
    let machine = Machine::new();
    let question = |answer: &str| {
        json!({
            "task": "capital",
            "messages": [{"role": "user", "content": "What is the capital of France?"}],
            "answer": answer,
        })
    };
    let wrong = "The capital of France is Lyon, as nobody knows.";
    let exam = json!({"questions": [question("The capital of France is Paris."), question(wrong)]});
    std::fs::write(machine.path().join("exam.json"), exam.to_string()).unwrap();
    let marks = report(&eval(&machine, "exam.json", &["--json"]));
    assert_eq!((&marks["total"], &marks["by_task"]["capital"]), (&0.5.into(), &0.5.into()));
    let mistake = json!([{"task": "capital", "expected": wrong, "found": "The capital of France is Paris."}]);
    assert_eq!(marks["mistakes"], mistake);
}

#[test]
fn an_exam_or_a_task_that_is_not_there_is_refused() {
    let machine = Machine::new();
    std::fs::write(machine.path().join("empty.json"), r#"{"questions": []}"#).unwrap();
    std::fs::write(machine.path().join("list.json"), "[]").unwrap();
    let refusals: [(&str, &[&str], i32, &str); 6] = [
        ("nowhere.json", &[], 1, "cannot read nowhere.json"),
        ("empty.json", &[], 1, "empty.json has no questions"),
        ("list.json", &[], 1, "list.json is not an exam"),
        ("empty.json", &["--fraction", "0"], 2, "must be above 0 and at most 1"),
        (&exam(), &["--tasks", "chess"], 1, "no task `chess`; its tasks are capital, repeat"),
        ("empty.json", &["--reference", "--backend", "cpu"], 2, "cannot be used with"),
    ];
    for (exam, flags, code, expected) in refusals {
        let outcome = eval(&machine, exam, flags);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (code, ""), "{exam} {flags:?}");
        assert!(outcome.stderr.contains(expected), "{exam} {flags:?}: {}", outcome.stderr);
    }
}

#[test]
fn a_question_that_cannot_be_put_is_named_before_the_first_is_put() {
    let machine = Machine::new();
    let question = |text: &str| json!({"task": "long", "messages": [{"role": "user", "content": text}], "answer": "yes"});
    let exam = json!({"questions": [question("Is it?"), question(&"Is it? ".repeat(50))]});
    std::fs::write(machine.path().join("exam.json"), exam.to_string()).unwrap();
    let outcome = eval(&machine, "exam.json", &["--ctx", "64", "--json"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""), "{}", outcome.stderr);
    let expected = "error: question 2, of task `long`: the prompt has ";
    assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: convert with --ctx "), "{}", outcome.stderr);
}
