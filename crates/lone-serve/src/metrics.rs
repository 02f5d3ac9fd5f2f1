//! Numbers for Prometheus.

mod energy;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use lone_energy::Energy;
use lone_engine::{Ended, Load, Phase};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::meter::Meter;
use energy::EnergyMetrics;

type Seconds = Counter<f64, AtomicU64>;
type Number = Gauge<f64, AtomicU64>;

/// All there is to count.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Histogram,
    answers: Counter,
    pub(crate) abandoned: Counter,
    prompt_cached_tokens: Counter,
    prefill: PhaseMetrics,
    decode: PhaseMetrics,
    drafted: Counter,
    accepted: Counter,
    waiting: Gauge,
    active: Gauge,
    sessions: Gauge,
    session_bytes: Gauge,
    /// Where there is a meter.
    energy: Option<EnergyMetrics>,
}

/// What a request was and how it went.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    path: String,
    status: u16,
}

/// One phase of all answers.
#[derive(Debug, Default)]
struct PhaseMetrics {
    tokens: Counter,
    passes: Counter,
    seconds: Seconds,
    /// Of the last answer.
    tokens_per_second: Number,
}

impl PhaseMetrics {
    fn register(&self, phase: &str, registry: &mut Registry) {
        let name = |what: &str| format!("{phase}_{what}");
        registry.register(
            name("tokens"),
            format!("Tokens of {phase}, in answers that came to their end"),
            self.tokens.clone(),
        );
        registry.register(name("passes"), format!("Passes of {phase}"), self.passes.clone());
        registry.register(name("seconds"), format!("Seconds of {phase}"), self.seconds.clone());
        let help = format!("Speed of {phase} in the last answer");
        registry.register(name("tokens_per_second"), help, self.tokens_per_second.clone());
    }

    fn add(&self, phase: &Phase) {
        self.tokens.inc_by(phase.tokens as u64);
        self.passes.inc_by(phase.passes as u64);
        self.seconds.inc_by(phase.time.as_secs_f64());
        self.tokens_per_second.set(phase.tokens_per_second());
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = [0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 20.0, 60.0, 300.0];
        let mut metrics = Metrics {
            registry: Registry::with_prefix("lone"),
            requests: Family::default(),
            request_seconds: Histogram::new(seconds),
            answers: Counter::default(),
            abandoned: Counter::default(),
            prompt_cached_tokens: Counter::default(),
            prefill: PhaseMetrics::default(),
            decode: PhaseMetrics::default(),
            drafted: Counter::default(),
            accepted: Counter::default(),
            waiting: Gauge::default(),
            active: Gauge::default(),
            sessions: Gauge::default(),
            session_bytes: Gauge::default(),
            energy: None,
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let Metrics { registry, .. } = self;
        registry.register("requests", "Requests by address and status", self.requests.clone());
        let help = "Seconds until the head of the response; streams go on after it";
        registry.register("request_seconds", help, self.request_seconds.clone());
        registry.register("answers", "Answers that came to their end", self.answers.clone());
        registry.register(
            "abandoned_requests",
            "Requests whose client went away, or that failed",
            self.abandoned.clone(),
        );
        let help = "Tokens of prompts that a session held already";
        registry.register("prompt_cached_tokens", help, self.prompt_cached_tokens.clone());
        self.prefill.register("prefill", registry);
        self.decode.register("decode", registry);
        registry.register("drafted_tokens", "Tokens guessed and checked", self.drafted.clone());
        registry.register("accepted_tokens", "Those of them that answers took", self.accepted.clone());
        registry.register("queue_waiting", "Requests that wait", self.waiting.clone());
        registry.register("requests_active", "Requests that are being answered", self.active.clone());
        registry.register("sessions", "Sequences kept", self.sessions.clone());
        registry.register("session_bytes", "Bytes of their caches and snapshots", self.session_bytes.clone());
    }

    /// Counts what `meter` counts, too.
    pub(crate) fn add_meter(&mut self, meter: Arc<Meter>) {
        self.energy = EnergyMetrics::register(meter, &mut self.registry);
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, ended: &Ended) {
        self.answers.inc();
        self.prompt_cached_tokens.inc_by(ended.stats.reused_tokens as u64);
        self.prefill.add(&ended.stats.prefill);
        self.decode.add(&ended.stats.decode);
        self.drafted.inc_by(ended.stats.speculated.drafted as u64);
        self.accepted.inc_by(ended.stats.speculated.accepted as u64);
    }

    /// Shows what a request used from its beginning to the end of its answers, of `tokens` in all.
    pub(crate) fn used(&self, energy: &Energy, tokens: usize) {
        if let Some(metrics) = &self.energy {
            metrics.answered(energy, tokens);
        }
    }

    /// Counts a response.
    pub(crate) fn responded(&self, path: &str, status: u16, after: Duration) {
        self.requests.get_or_create(&RequestLabels { path: path.into(), status }).inc();
        self.request_seconds.observe(after.as_secs_f64());
    }

    /// All of them as OpenMetrics text.
    pub(crate) fn text(&self, load: &Load) -> String {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.waiting.set(number(load.waiting));
        self.active.set(number(load.active));
        self.sessions.set(number(load.sessions));
        self.session_bytes.set(i64::try_from(load.session_bytes).unwrap_or(i64::MAX));
        if let Some(energy) = &self.energy {
            energy.read();
        }
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string does not fail");
        text
    }
}
