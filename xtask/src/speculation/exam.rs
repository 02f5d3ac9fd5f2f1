//! The trained models' exam, answered without guesses and with each proposer's, a question by all in turn.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lone_engine::{
    Generation, NgramSimple, Proposer, Request, Runtime, SessionOptions, Stats, SuffixProposer,
};
use lone_lfm::{ChatTemplate, Conversation, Tokenizer};
use serde_json::Value;

use super::watched::{Tally, Watched};
use super::{load, median, push_row, ratio};

/// Copies, short copies, and a control that repeats nothing.
const TASKS: [&str; 3] = ["code", "repeat", "canned"];

const MODELS: [&str; 2] = ["tiny-lfm3", "tiny-lfm2"];

/// Who guesses.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Arm {
    Nobody,
    Ngram,
    Suffix,
}

impl Arm {
    const ALL: [Arm; 3] = [Arm::Nobody, Arm::Ngram, Arm::Suffix];

    fn name(self) -> &'static str {
        match self {
            Arm::Nobody => "none",
            Arm::Ngram => "ngram",
            Arm::Suffix => "suffix",
        }
    }

    fn proposer(self) -> Option<Box<dyn Proposer>> {
        match self {
            Arm::Nobody => None,
            Arm::Ngram => Some(Box::new(NgramSimple::new(NgramSimple::USUAL_N, NgramSimple::USUAL_M))),
            Arm::Suffix => Some(Box::new(SuffixProposer::new())),
        }
    }
}

/// What all answers to the questions of a task came to.
#[derive(Debug, Clone, Default)]
struct Total {
    tokens: usize,
    passes: usize,
    drafted: usize,
    accepted: usize,
    time: Duration,
    proposer_time: Duration,
}

impl Total {
    fn add(&mut self, stats: &Stats, proposer_time: Duration) {
        self.tokens += stats.decode.tokens;
        self.passes += stats.decode.passes;
        self.drafted += stats.speculated.drafted;
        self.accepted += stats.speculated.accepted;
        self.time += stats.decode.time;
        self.proposer_time += proposer_time;
    }
}

pub(super) fn report(page: &mut String, models: &Path, rounds: usize) -> anyhow::Result<()> {
    let header = "| model | questions | proposer | tokens | passes | tokens/pass | fewer passes | accepted | speed-up | proposer's share of time |";
    *page += &format!("{header}\n|{}\n", "---|".repeat(10));
    for model in MODELS {
        let dir = models.join(model);
        let mut runtime = load(&dir, 512)?;
        for task in TASKS {
            let prompts = prompts(&dir, task)?;
            let mut totals: Vec<[Total; 3]> = Vec::new();
            for _ in 0..rounds {
                totals.push(round(&mut runtime, &prompts)?);
            }
            for (i, arm) in Arm::ALL.into_iter().enumerate() {
                push_arm(
                    page,
                    model,
                    task,
                    arm,
                    &totals.iter().map(|arms| [&arms[0], &arms[i]]).collect::<Vec<_>>(),
                )?;
            }
        }
    }
    Ok(())
}

/// A row of the table: `rounds` are totals without guesses and of the arm.
fn push_arm(
    page: &mut String,
    model: &str,
    task: &str,
    arm: Arm,
    rounds: &[[&Total; 2]],
) -> anyhow::Result<()> {
    let [plain, total] = rounds[rounds.len() / 2];
    let time = |which: usize| median(rounds.iter().map(|arms| arms[which].time).collect());
    let share = median(rounds.iter().map(|arms| arms[1].proposer_time).collect());
    let accepted = if total.drafted == 0 {
        "none drafted".to_owned()
    } else {
        format!(
            "{} of {}, {:.0} %",
            total.accepted,
            total.drafted,
            100.0 * total.accepted as f64 / total.drafted as f64
        )
    };
    let is_plain = arm == Arm::Nobody;
    let unless_plain = |text: String| if is_plain { String::new() } else { text };
    push_row(
        page,
        &[
            model.to_owned(),
            task.to_owned(),
            arm.name().to_owned(),
            total.tokens.to_string(),
            total.passes.to_string(),
            format!("{:.2}", total.tokens as f64 / total.passes as f64),
            unless_plain(format!("{:.2}x", plain.passes as f64 / total.passes as f64)),
            unless_plain(accepted),
            unless_plain(format!("{:.2}x", ratio(time(0), time(1)))),
            unless_plain(format!("{:.2} %", 100.0 / ratio(time(1), share))),
        ],
    )?;
    Ok(())
}

/// Every question by every arm, the arms in turn. Each arm keeps its proposer, and so its experience, for the round.
fn round(runtime: &mut Runtime, prompts: &[Vec<u32>]) -> anyhow::Result<[Total; 3]> {
    let mut totals = <[Total; 3]>::default();
    let tallies = [(); 3].map(|()| Tally::default());
    let mut sessions = Vec::new();
    for (arm, tally) in Arm::ALL.into_iter().zip(&tallies) {
        let mut session = runtime.session(&SessionOptions::default())?;
        let watched = |proposer| Box::new(Watched { proposer, tally: tally.clone() }) as Box<dyn Proposer>;
        session.set_proposer(runtime, arm.proposer().map(watched))?;
        sessions.push(session);
    }
    for prompt in prompts {
        for ((session, tally), total) in sessions.iter_mut().zip(&tallies).zip(&mut totals) {
            let before = tally.time();
            let request = Request {
                prompt: prompt.clone(),
                max_new_tokens: 80,
                stop_tokens: runtime.facts().eos_token_ids.clone(),
                ..Request::default()
            };
            let mut generation = Generation::begin(runtime, session, None, request)?;
            generation.run(runtime, session, &AtomicBool::new(false), &mut |_| ())?;
            total.add(&generation.stats(), tally.time() - before);
        }
    }
    Ok(totals)
}

fn prompts(dir: &Path, task: &str) -> anyhow::Result<Vec<Vec<u32>>> {
    let (template, tokenizer) = (ChatTemplate::open(dir)?, Tokenizer::open(dir)?);
    let exam: Value = serde_json::from_slice(&std::fs::read(dir.join("exam.json"))?)?;
    let mut prompts = Vec::new();
    for question in exam["questions"].as_array().into_iter().flatten() {
        if question["task"] == task {
            let messages = question["messages"].as_array().map_or(&[][..], Vec::as_slice);
            prompts.push(tokenizer.encode(&template.render(&Conversation::new(messages))?)?);
        }
    }
    Ok(prompts)
}
