//! What was found, for people, for issues and for programs.

use lone_bundle::{Placement, Role};
use serde::Serialize;

use super::subject::Subject;
use super::table::Table;
use super::trial::{Measured, Outcome, Trial};
use crate::failure::Failure;
use crate::machine::Machine;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Placement>,
    trials: Vec<Trial>,
}

impl Report {
    pub(super) fn new(
        machine: Machine,
        meter: Result<&'static str, String>,
        subject: &Subject,
        trials: Vec<Trial>,
    ) -> Self {
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
            placement: subject.bundle.placement.clone(),
            trials,
        }
    }

    /// Whether all is as it should be.
    ///
    /// # Errors
    /// What is not, in a line.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        let failed = self.trials.iter().filter(|trial| !trial.passed()).map(|trial| trial.backend);
        let mut wrong: Vec<String> = failed.map(str::to_owned).collect();
        if !self.damaged.is_empty() {
            wrong.push(format!("{} not as written", counted(self.damaged.len(), "file")));
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(Failure::user(format_args!("not well: {}", wrong.join(", "))))
        }
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
            Ok(()) => "All is well.".to_owned(),
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
        if let Some(placement) = &self.placement {
            let share = 100.0 * placement.neural_engine_share();
            facts.push(("placement", format!("{share:.1} % on the Neural Engine of {}", placement.system)));
        }
        facts
    }

    fn tables(&self) -> [(&'static str, Table); 2] {
        let mut parity = Table::new(&["backend", "passes", "cosine", "same token", "verdict"]);
        let mut speed = Table::new(&["backend", "first load", "second load", "decode", "energy"]);
        for trial in &self.trials {
            let backend = trial.backend.to_owned();
            match &trial.outcome {
                Outcome::Absent { reason } => parity.push(not_run(backend, format!("not tried: {reason}"))),
                Outcome::Failed { reason } => parity.push(not_run(backend, format!("FAILED: {reason}"))),
                Outcome::Ran(measured) => {
                    measured.push_parity(&backend, &mut parity);
                    speed.push(measured.speed(backend));
                }
            }
        }
        [("Is it right?", parity), ("Is it fast?", speed)]
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

    fn speed(&self, backend: String) -> Vec<String> {
        vec![
            backend,
            Seconds(self.first_load_seconds).to_string(),
            Seconds(self.second_load_seconds).to_string(),
            format!("{:.1} tok/s", self.tokens_per_second),
            self.energy.as_ref().map_or_else(|| "no meter".into(), |energy| energy.line()),
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
            placement: None,
            trials,
        }
    }

    fn ran(mean_cosine: f64, passed: bool) -> Trial {
        let parity = vec![Parity { role: Role::Decode, mean_cosine, same: 1, positions: 2, passed }];
        let measured = Measured {
            first_load_seconds: 1.0,
            second_load_seconds: 0.5,
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
        assert!(report.markdown().ends_with("**not well: cpu, coreml, 2 files not as written**\n"));
    }

    #[test]
    fn tables_are_the_same_on_a_terminal_and_in_an_issue() {
        let report = report(vec![ran(0.5, false), absent()], vec![]);
        for part in
            ["0.5000000", "1 of 2", "FAILED", "not tried: this is not macOS", "10.0 tok/s", "no meter"]
        {
            assert!(report.text().contains(part) && report.markdown().contains(part), "{part}");
        }
    }
}
