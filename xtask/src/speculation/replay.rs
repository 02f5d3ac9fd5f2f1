//! Guesses replayed on a model of real dimensions: tokens and acceptance are scripted, the passes are real.

use std::time::{Duration, Instant};

use lone_engine::{Runtime, Sampler, Sampling, SessionOptions};

use super::{DRAFTS, load, median, push_row, ratio};
use crate::fake_checkpoint::{self, Options, Preset};
use crate::split_mix::SplitMix;

/// How likely a guess is right, for each arm; the last one is a control whose every guess is wrong.
const ACCEPTANCES: [f64; 5] = [1.0, 0.9, 0.8, 0.5, 0.0];

/// Tokens made by each arm in a round.
const TOKENS: usize = 68;

/// Tokens in the caches before.
const PROMPT: usize = 64;

/// What an arm took in a round.
struct Taken {
    passes: usize,
    time: Duration,
}

pub(super) fn report(page: &mut String, rounds: usize) -> anyhow::Result<()> {
    let parent = tempfile::tempdir()?;
    let checkpoint = parent.path().join("lfm2-350m");
    let options = Options { tokenizer: false, ..Options::new(Preset::Lfm2_350m.model()) };
    fake_checkpoint::write(&checkpoint, &options)?;
    let mut runtime = load(&checkpoint, 512)?;
    drop(parent);

    let (mut plain, mut guessed) = (Vec::new(), [const { Vec::new() }; 5]);
    for round in 0..=rounds {
        let taken = replay(&mut runtime, None, 0)?;
        let mut random = SplitMix(round as u64);
        let arms =
            ACCEPTANCES.map(|acceptance| replay(&mut runtime, Some((acceptance, &mut random)), DRAFTS));
        // The first round warms up.
        if round > 0 {
            plain.push(taken);
            for (all, arm) in guessed.iter_mut().zip(arms) {
                all.push(arm?);
            }
        }
    }
    push_tables(page, &plain, &guessed)
}

fn push_tables(page: &mut String, plain: &[Taken], guessed: &[Vec<Taken>; 5]) -> anyhow::Result<()> {
    let time = |arms: &[Taken]| median(arms.iter().map(|taken| taken.time).collect());
    let per_pass =
        |arms: &[Taken]| median(arms.iter().map(|taken| taken.time / taken.passes as u32).collect());
    let cost = ratio(per_pass(&guessed[4]), per_pass(plain));
    *page += &format!(
        "lfm2-350m's dimensions: a pass of one token takes {:.1} ms, one of {} tokens {cost:.2} times that.\n\n",
        1e3 * per_pass(plain).as_secs_f64(),
        DRAFTS + 1
    );
    *page += "| a guess is right | passes for 68 tokens | tokens/pass | speed-up |\n|---|---|---|---|\n";
    for (acceptance, arms) in ACCEPTANCES.iter().zip(guessed) {
        let passes = arms.iter().map(|taken| taken.passes as f64).sum::<f64>() / arms.len() as f64;
        push_row(
            page,
            &[
                format!("{:.0} %", 100.0 * acceptance),
                format!("{passes:.1}"),
                format!("{:.2}", TOKENS as f64 / passes),
                format!("{:.2}x", ratio(time(plain), time(arms))),
            ],
        )?;
    }
    Ok(())
}

/// Makes [`TOKENS`] tokens in passes that check `drafts` guesses each, right with a scripted probability.
fn replay(
    runtime: &mut Runtime,
    mut script: Option<(f64, &mut SplitMix)>,
    drafts: usize,
) -> anyhow::Result<Taken> {
    let vocab_size = runtime.facts().vocab_size;
    let tokens: Vec<u32> =
        (0..PROMPT + TOKENS + drafts + 1).map(|i| (i * 7919 % vocab_size) as u32).collect();
    let mut session = runtime.session(&SessionOptions::default())?;
    session.extend(runtime, &tokens[..PROMPT])?;
    let mut sampler = Sampler::new(Sampling::default(), vocab_size)?;
    let mut logits = vec![0.0; (drafts + 1) * vocab_size];
    let mut passes = 0;
    let start = Instant::now();
    while session.position() < PROMPT + TOKENS {
        let accepted = script.as_mut().map_or(0, |(acceptance, random)| {
            (0..drafts).take_while(|_| random.unit() < *acceptance).count()
        });
        let position = session.position();
        let mut pass = session.pass(runtime, &tokens[position..=position + drafts])?;
        pass.logits(0..drafts + 1, &mut logits)?;
        // As many choices as an answer would make: of each accepted guess, and of what stands after them.
        for logits in logits.chunks_exact(vocab_size).take(accepted + 1) {
            sampler.choose(logits)?;
        }
        pass.commit(accepted + 1);
        passes += 1;
    }
    Ok(Taken { passes, time: start.elapsed() })
}
