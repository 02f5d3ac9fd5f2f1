//! What was found, for people, for issues and for programs.

use lone_bundle::{Placement, Role};
use serde::Serialize;

use super::subject::Subject;
use super::table::Table;
use super::trial::{Measured, Outcome, Trial};
use super::{Engine, MOST_SIMULATED};
use crate::failure::{Failure, UserError};
use crate::machine::Machine;
use crate::placement::{Departure, ENOUGH, departures};
use crate::quantity::{Bytes, Seconds, counted};

/// All that was found.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    lone_version: &'static str,
    machine: Machine,
    meter: Option<&'static str>,
    /// Why there is no meter.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_meter: Option<String>,
    model: String,
    parameters: u64,
    tokens: usize,
    reference: &'static str,
    damaged: Vec<String>,
    #[serde(skip)]
    remedy: String,
    /// Whether there is one, where Core ML can say that.
    #[serde(skip_serializing_if = "Option::is_none")]
    neural_engine: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Placement>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_placement: Option<String>,
    trials: Vec<Trial>,
    /// What is examined now, until all has been.
    #[serde(skip)]
    current: Option<&'static str>,
}

impl Report {
    /// Nothing has been tried yet.
    pub(super) fn new(machine: Machine, meter: Result<&'static str, String>, subject: &Subject) -> Self {
        Report {
            lone_version: env!("CARGO_PKG_VERSION"),
            machine,
            meter: meter.as_ref().ok().copied(),
            no_meter: meter.err(),
            model: subject.bundle.model.name.clone(),
            parameters: subject.bundle.model.parameters,
            tokens: subject.tokens.len(),
            reference: subject.reference,
            damaged: subject.damaged.clone(),
            remedy: subject.remedy.clone(),
            neural_engine: None,
            placement: None,
            no_placement: Some("nobody was asked yet".into()),
            trials: Vec::new(),
            current: None,
        }
    }

    /// `what` is examined next.
    pub(super) fn begin(&mut self, what: &'static str) {
        self.current = Some(what);
    }

    pub(super) fn add(&mut self, trial: Trial) {
        self.trials.push(trial);
    }

    /// All has been examined.
    pub(super) fn conclude(&mut self, engine: Engine) {
        self.neural_engine = engine.is_there;
        (self.placement, self.no_placement) = match engine.placement {
            Ok(placement) => (Some(placement), None),
            Err(reason) => (None, Some(reason)),
        };
        self.current = None;
    }

    /// Whether all is as it should be.
    ///
    /// # Errors
    /// What is not, in a line.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if let Some(current) = self.current {
            return Err(Failure::user(format_args!("not complete: it ended at {current}")));
        }
        let failed = self.trials.iter().filter(|trial| !trial.passed()).map(|trial| trial.backend);
        let mut wrong: Vec<String> = failed.map(str::to_owned).collect();
        if !self.damaged.is_empty() {
            wrong.push(format!("{} not as written", counted(self.damaged.len(), "file")));
        }
        wrong.extend(self.desertion().filter(|_| self.parameters > MOST_SIMULATED));
        if wrong.is_empty() {
            return Ok(());
        }
        let error = UserError::new(format_args!("not well: {}", wrong.join(", ")));
        Err(if self.damaged.is_empty() { error } else { error.with_hint(&self.remedy) }.into())
    }

    /// What is to be said if there is a Neural Engine and much does not run on it. So small a model as lone carries may be kept
    /// from it for good reason.
    fn desertion(&self) -> Option<String> {
        let share = self.placement.as_ref()?.neural_engine_share()?;
        (share < ENOUGH && self.neural_engine == Some(true))
            .then(|| format!("{:.1} % of operations on the Neural Engine", 100.0 * share))
    }

    /// For a terminal.
    pub(super) fn text(&self) -> String {
        let mut text = format!("lone {}\n", self.lone_version);
        for (name, value) in self.facts() {
            text += &format!("  {name:<11} {value}\n");
        }
        for (heading, table) in self.tables() {
            text += &format!("\n{heading}\n{}", table.text());
        }
        text
    }

    /// For an issue.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!("# lone doctor, lone {}\n\n", self.lone_version);
        for (name, value) in self.facts() {
            text += &format!("- {name}: {value}\n");
        }
        for (heading, table) in self.tables() {
            text += &format!("\n## {heading}\n\n{}", table.markdown());
        }
        let verdict = match self.verdict() {
            Ok(()) => match self.desertion() {
                Some(desertion) => format!("All is well, but: {desertion}."),
                None => "All is well.".to_owned(),
            },
            Err(Failure::User(error)) => format!("**{}**", error.message),
            Err(_) => "**Not well.**".to_owned(),
        };
        text + &format!("\n{verdict}\n")
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let memory = self.machine.memory_bytes.map(|bytes| format!(", {} of memory", Bytes(bytes)));
        let mut facts = vec![
            ("machine", format!("{}{}", self.machine.line(), memory.unwrap_or_default())),
            ("meter", self.meter.map_or_else(|| self.no_meter.clone().unwrap_or_default(), str::to_owned)),
            ("model", format!("{}, {} parameters", self.model, self.parameters)),
            ("compared", format!("{} with {}", counted(self.tokens, "token"), self.reference)),
        ];
        if !self.damaged.is_empty() {
            facts.push(("damaged", self.damaged.join(", ")));
        }
        facts.push(("placement", self.placement()));
        facts
    }

    fn placement(&self) -> String {
        let Some(placement) = &self.placement else {
            return format!("not known: {}", self.no_placement.as_deref().unwrap_or_default());
        };
        let none = if self.neural_engine == Some(false) { ", which has none" } else { "" };
        match placement.neural_engine_share() {
            Some(share) => {
                format!("{:.1} % on the Neural Engine of {}{none}", 100.0 * share, placement.system)
            }
            None => format!("not known: Core ML on {} does not say", placement.system),
        }
    }

    fn tables(&self) -> Vec<(&'static str, Table)> {
        let mut parity = Table::new(&["backend", "passes", "cosine", "same token", "verdict"]);
        let mut speed = Table::new(&["backend", "cold load", "warm load", "decode", "energy"]);
        for trial in &self.trials {
            let backend = trial.backend.to_owned();
            match &trial.outcome {
                Outcome::Absent { reason } => parity.push(not_run(backend, format!("not tried: {reason}"))),
                Outcome::Failed { reason } => parity.push(not_run(backend, format!("FAILED: {reason}"))),
                Outcome::Ran(measured) => {
                    measured.push_parity(&backend, &mut parity);
                    speed.push(measured.speed(backend, self.meter.is_some()));
                }
            }
        }
        let mut tables = vec![("Is it right?", parity), ("Is it fast?", speed)];
        tables.extend(self.departures().map(|table| ("What is not on the Neural Engine?", table)));
        tables
    }

    /// `None` if all is on it, or that is not known.
    fn departures(&self) -> Option<Table> {
        let functions = &self.placement.as_ref()?.functions;
        let mut table = Table::new(&["package", "function", "device", "operator", "cost", "names"]);
        for function in functions {
            for departure in departures(function) {
                let cost = departure.cost();
                let Departure { device, operator, names, .. } = departure;
                let (package, function) = (function.package.clone(), function.function.clone());
                table.push(vec![package, function, device.into(), operator.into(), cost, names]);
            }
        }
        functions.iter().any(|function| !function.elsewhere.is_empty()).then_some(table)
    }
}

fn not_run(backend: String, verdict: String) -> Vec<String> {
    vec![backend, String::new(), String::new(), String::new(), verdict]
}

impl Measured {
    fn push_parity(&self, backend: &str, table: &mut Table) {
        for parity in &self.parity {
            table.push(vec![
                backend.to_owned(),
                role(parity.role).to_owned(),
                format!("{:.7}", parity.mean_cosine),
                format!("{} of {}", parity.same, parity.positions),
                if parity.passed { "ok" } else { "FAILED" }.to_owned(),
            ]);
        }
    }

    fn speed(&self, backend: String, is_metered: bool) -> Vec<String> {
        let unmeasured = if is_metered { "too short for the meter" } else { "no meter" };
        vec![
            backend,
            Seconds(self.cold_load_seconds).to_string(),
            Seconds(self.warm_load_seconds).to_string(),
            format!("{:.1} tok/s", self.tokens_per_second),
            self.energy.as_ref().map_or_else(|| unmeasured.into(), |energy| energy.line()),
        ]
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Decode => "decode",
        Role::Prefill => "prefill",
        Role::Verify => "verify",
    }
}

#[cfg(test)]
mod tests {
    use lone_bundle::{FunctionPlacement, PlacedOp};

    use super::super::trial::Parity;
    use super::*;

    fn report(trials: Vec<Trial>, damaged: Vec<String>) -> Report {
        Report {
            lone_version: "0",
            machine: Machine { chip: None, system: Some("a system".into()), memory_bytes: None },
            meter: None,
            no_meter: Some("none".into()),
            model: "m".into(),
            parameters: 7,
            tokens: 2,
            reference: "the checkpoint",
            damaged,
            remedy: "copy it again".into(),
            neural_engine: None,
            placement: None,
            no_placement: Some("nobody to ask".into()),
            trials,
            current: None,
        }
    }

    fn ran(mean_cosine: f64, passed: bool) -> Trial {
        let parity = vec![Parity { role: Role::Decode, mean_cosine, same: 1, positions: 2, passed }];
        let measured = Measured {
            cold_load_seconds: 1.0,
            warm_load_seconds: 0.5,
            parity,
            tokens_per_second: 10.0,
            energy: None,
        };
        Trial { backend: "cpu", outcome: Outcome::Ran(measured) }
    }

    fn absent() -> Trial {
        Trial { backend: "coreml", outcome: Outcome::Absent { reason: "this is not macOS".into() } }
    }

    #[test]
    fn what_is_absent_is_no_fault_and_what_is_wrong_is_named() {
        assert!(report(vec![ran(1.0, true), absent()], vec![]).verdict().is_ok());
        let failed =
            Trial { backend: "coreml", outcome: Outcome::Failed { reason: "it will not load".into() } };
        let report = report(vec![ran(0.5, false), failed], vec!["a".into(), "b".into()]);
        let Err(Failure::User(error)) = report.verdict() else { panic!("it is well") };
        assert_eq!(error.message, "not well: cpu, coreml, 2 files not as written");
        assert_eq!(error.hint.as_deref(), Some("copy it again"));
        assert!(report.markdown().ends_with("**not well: cpu, coreml, 2 files not as written**\n"));
    }

    #[test]
    fn a_report_of_an_examination_that_was_ended_says_where() {
        let mut report = report(vec![ran(1.0, true)], vec![]);
        report.begin("coreml cpu_and_ne");
        let markdown = report.markdown();
        assert!(markdown.ends_with("\n**not complete: it ended at coreml cpu_and_ne**\n"), "{markdown}");
        report.conclude(Engine { is_there: None, placement: Err("nobody to ask".into()) });
        assert!(report.markdown().ends_with("All is well.\n"));
    }

    #[test]
    fn what_left_the_neural_engine_is_named_and_a_fault_of_models_that_are_not_small() {
        let op = |name: &str| PlacedOp {
            name: name.into(),
            operator: "conv".into(),
            device: "cpu".into(),
            cost: Some(0.125),
        };
        let function = FunctionPlacement {
            package: "chunk_00.mlpackage".into(),
            function: "decode".into(),
            neural_engine: 1,
            elsewhere: vec![op("q"), op("k"), op("v")],
        };
        let placement =
            Placement { system: "M1".into(), compute_units: "cpu_and_ne".into(), functions: vec![function] };
        let report = |neural_engine, parameters| Report {
            neural_engine,
            parameters,
            placement: Some(placement.clone()),
            ..report(vec![ran(1.0, true)], vec![])
        };
        for (neural_engine, fact) in
            [(Some(true), "M1\n"), (Some(false), "M1, which has none\n"), (None, "M1\n")]
        {
            let report = report(neural_engine, MOST_SIMULATED + 1);
            assert_eq!(report.verdict().is_err(), neural_engine == Some(true));
            for text in [report.text(), report.markdown()] {
                assert!(text.contains(&format!("25.0 % on the Neural Engine of {fact}")), "{text}");
                assert!(text.contains("q, k, v") && text.contains("37.5 %"), "{text}");
            }
        }
        for (parameters, end) in
            [(MOST_SIMULATED, "All is well, but: "), (MOST_SIMULATED + 1, "**not well: ")]
        {
            let markdown = report(Some(true), parameters).markdown();
            let last = markdown.lines().last().unwrap();
            assert!(last.starts_with(&format!("{end}25.0 % of operations on the Neural Engine")), "{last}");
        }
    }

    #[test]
    fn what_was_too_short_for_the_meter_is_told_from_there_being_none() {
        for (meter, energy) in [(None, "no meter"), (Some("IOReport"), "too short for the meter")] {
            let report = Report { meter, ..report(vec![ran(1.0, true)], vec![]) };
            assert!(report.text().contains(&format!("10.0 tok/s  {energy}\n")), "{}", report.text());
        }
    }

    #[test]
    fn tables_are_the_same_on_a_terminal_and_in_an_issue() {
        let report = report(vec![ran(0.5, false), absent()], vec![]);
        for part in [
            "0.5000000",
            "1 of 2",
            "FAILED",
            "not tried: this is not macOS",
            "10.0 tok/s",
            "no meter",
            "nobody to ask",
        ] {
            assert!(report.text().contains(part) && report.markdown().contains(part), "{part}");
        }
    }
}
