//! One bundle on one number of threads: loaded once, measured whenever it is its turn.

use std::path::Path;
use std::time::Instant;

use lone_bundle::Role;
use lone_energy::{Energy, EnergyWatch};
use lone_engine::{EngineError, LoadOptions, Runtime, Sampler, Sampling, Session, SessionOptions};
use lone_mil::StepProfile;

use super::{Setting, memory};
use crate::failure::{Failure, UserError};
use crate::quantity::counted;

/// Times a verify pass is run in one turn.
const VERIFY_PASSES: usize = 3;

/// What every arm is measured with.
#[derive(Debug, Clone)]
pub(super) struct Workload {
    /// Lengths of prompts, ascending.
    pub(super) prompts: Vec<usize>,
    /// Tokens decoded after each.
    pub(super) decoded: usize,
    /// Whether verify passes are run.
    pub(super) verify: bool,
}

/// A loaded bundle and its measurements.
pub(super) struct Arm {
    /// What it is called.
    pub(super) bundle: String,
    /// Of the CPU backend.
    pub(super) threads: Option<usize>,
    pub(super) backend: &'static str,
    pub(super) fast_int16: bool,
    pub(super) load_seconds: f64,
    /// Anonymous memory that came with it, caches among it; `None` where the system does not say.
    pub(super) private_bytes: Option<u64>,
    runtime: Runtime,
    session: Session,
    sampler: Sampler,
    /// A prompt as long as the longest.
    prompt: Vec<u32>,
    /// By length of prompt.
    pub(super) points: Vec<Point>,
    /// Tokens of a verify pass, and the seconds each took.
    pub(super) verify: Option<(usize, Vec<f64>)>,
}

/// Measurements with one length of prompt.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) prompt_tokens: usize,
    /// Seconds that all of the prompt took.
    pub(super) prefill: Vec<f64>,
    /// Seconds a token took after it.
    pub(super) decode: Vec<f64>,
    /// What decoding used each time, if there is a meter.
    pub(super) energy: Vec<Energy>,
}

impl Workload {
    pub(super) fn new(prompts: &[usize], decoded: usize, verify: bool) -> Self {
        let mut prompts = prompts.to_vec();
        prompts.sort_unstable();
        prompts.dedup();
        Workload { prompts, decoded, verify }
    }
}

impl Arm {
    /// Loads the bundle in `dir`.
    ///
    /// # Errors
    /// As the bundle and the backend have it, or if it cannot do all of `work`.
    pub(super) fn load(dir: &Path, setting: &Setting, work: &Workload) -> Result<Self, Failure> {
        let before = memory::private_bytes();
        let start = Instant::now();
        let runtime = Runtime::load(dir, setting.backend.as_ref(), &LoadOptions::default())?;
        let session = runtime.session(&SessionOptions { snapshots: 0, ..SessionOptions::default() })?;
        let load_seconds = start.elapsed().as_secs_f64();
        let vocab_size = runtime.facts().vocab_size;
        let shapes: Vec<_> = runtime.shapes().filter(|shape| shape.2 == session.ctx()).collect();
        let verify = shapes.iter().find(|shape| shape.0 == Role::Verify).filter(|_| work.verify);
        let verify = verify.map(|&(_, tokens, _)| (tokens, Vec::new()));
        check(work, &session, verify.as_ref().map(|(tokens, _)| *tokens), dir)?;
        let sampler = Sampler::new(Sampling::default(), vocab_size).map_err(EngineError::from)?;
        let point = |&prompt_tokens| Point { prompt_tokens, prefill: vec![], decode: vec![], energy: vec![] };
        let mut arm = Arm {
            bundle: dir.display().to_string(),
            threads: setting.threads,
            backend: setting.backend.name(),
            fast_int16: setting.fast_int16,
            load_seconds,
            private_bytes: None,
            prompt: some_tokens(work.prompts.last().copied().unwrap_or(0), vocab_size),
            points: work.prompts.iter().map(point).collect(),
            runtime,
            session,
            sampler,
            verify,
        };
        arm.warm_up()?;
        arm.private_bytes =
            before.zip(memory::private_bytes()).map(|(before, after)| after.saturating_sub(before));
        Ok(arm)
    }

    /// For people who wait.
    pub(super) fn name(&self) -> String {
        let way = if self.fast_int16 { ", fast-int16" } else { "" };
        match self.threads {
            Some(threads) => format!("{} on {}{way}", self.bundle, counted(threads, "thread")),
            None => self.bundle.clone(),
        }
    }

    /// Touches all weights and working memory once.
    fn warm_up(&mut self) -> Result<(), EngineError> {
        let tokens = self.prompt[..self.points[0].prompt_tokens].to_vec();
        self.session.extend(&mut self.runtime, &tokens)?;
        self.session.extend(&mut self.runtime, &tokens[..1])
    }

    /// Measures everything of `work` once.
    ///
    /// # Errors
    /// As passes have it.
    pub(super) fn take_turn(
        &mut self,
        work: &Workload,
        mut meter: Option<&mut EnergyWatch>,
    ) -> Result<(), EngineError> {
        for number in 0..self.points.len() {
            let length = self.points[number].prompt_tokens;
            self.session.rewind(0);
            let start = Instant::now();
            self.session.extend(&mut self.runtime, &self.prompt[..length])?;
            self.points[number].prefill.push(start.elapsed().as_secs_f64());
            // A meter that fails leaves the speed, which does not need it.
            let mark = meter.as_mut().and_then(|meter| meter.mark().ok());
            let start = Instant::now();
            for _ in 0..work.decoded {
                let logits = self.session.logits().expect("a prompt or token was read to its end");
                let token = self.sampler.choose(logits)?;
                self.session.extend(&mut self.runtime, &[token])?;
            }
            self.points[number].decode.push(start.elapsed().as_secs_f64() / work.decoded as f64);
            let energy = meter.as_mut().zip(mark).and_then(|(meter, from)| {
                let to = meter.mark().ok()?;
                meter.measured(&from, &to)
            });
            self.points[number].energy.extend(energy);
            if number == 0 {
                self.verify_drafts()?;
            }
        }
        Ok(())
    }

    /// Passes that are run to their last logits and not accepted.
    fn verify_drafts(&mut self) -> Result<(), EngineError> {
        let Some((tokens, seconds)) = &mut self.verify else { return Ok(()) };
        let vocab_size = self.runtime.facts().vocab_size;
        let drafts = some_tokens(*tokens, vocab_size);
        let mut logits = vec![0.0; *tokens * vocab_size];
        for _ in 0..VERIFY_PASSES {
            let start = Instant::now();
            let mut pass = self.session.pass(&mut self.runtime, &drafts)?;
            pass.logits(0..*tokens, &mut logits)?;
            seconds.push(start.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// Of the caches the session has come to.
    pub(super) fn cache_bytes(&self) -> u64 {
        self.session.cache_bytes()
    }

    /// The steps that decode a token at the context the session has come to, and what they have cost so far. Without a
    /// decode pass it is the smallest prefill pass that does; heads decode in any case.
    pub(super) fn profile(&self) -> Vec<StepProfile> {
        let tokens = |wanted: Role| {
            let here = self.runtime.shapes().filter(|shape| shape.2 == self.session.rung());
            here.filter(move |shape| shape.0 == wanted).map(|shape| shape.1).min()
        };
        let prefill = if tokens(Role::Decode).is_none() { tokens(Role::Prefill) } else { None };
        let mut steps = prefill.map_or_else(Vec::new, |tokens| self.steps(Role::Prefill, tokens));
        steps.extend(self.steps(Role::Decode, 1));
        steps
    }

    fn steps(&self, role: Role, tokens: usize) -> Vec<StepProfile> {
        self.runtime.profile(role, tokens, self.session.rung())
    }

    /// Bytes of weights that decoding a token reads, where the backend says.
    pub(super) fn weight_bytes(&self) -> Option<u64> {
        let bytes = self.profile().iter().map(|step| step.weight_bytes as u64).sum();
        Some(bytes).filter(|&bytes| bytes > 0)
    }

    /// Floating-point operations on weights that a token of a long prompt takes, where the backend says.
    pub(super) fn prefill_flops(&self) -> Option<f64> {
        let prefill = self.runtime.shapes().filter(|shape| shape.0 == Role::Prefill);
        let tokens = prefill.map(|shape| shape.1).max()?;
        self.flops(Role::Prefill, tokens)
    }

    /// Floating-point operations on weights that a token of a verify pass takes, where the backend says.
    pub(super) fn verify_flops(&self) -> Option<f64> {
        self.flops(Role::Verify, self.verify.as_ref()?.0)
    }

    fn flops(&self, role: Role, tokens: usize) -> Option<f64> {
        let multiply_adds: usize = self.steps(role, tokens).iter().map(|step| step.multiply_adds).sum();
        (multiply_adds > 0).then(|| 2.0 * multiply_adds as f64 / tokens as f64)
    }
}

/// Refuses a bundle that cannot do all of `work`.
fn check(work: &Workload, session: &Session, verify: Option<usize>, dir: &Path) -> Result<(), UserError> {
    let longest = work.prompts.last().copied().unwrap_or(0) + work.decoded.max(verify.unwrap_or(0));
    let (ctx, dir) = (session.ctx(), dir.display());
    if longest > ctx {
        let message = format!("{longest} tokens do not fit the context of {dir}, {ctx}");
        return Err(UserError::new(message).with_hint("--prompt-tokens and --gen say how many"));
    }
    if work.verify && verify.is_none() {
        let message = format!("{dir} has no pass that checks drafts");
        return Err(UserError::new(message).with_hint("lone convert --spec-drafts 16"));
    }
    Ok(())
}

/// Tokens all over the vocabulary, the same every time.
fn some_tokens(count: usize, vocab_size: usize) -> Vec<u32> {
    (0..count).map(|i| ((i * 7919 + 13) % vocab_size) as u32).collect()
}
