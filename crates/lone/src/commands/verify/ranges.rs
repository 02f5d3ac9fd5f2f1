//! Ranges of the programs' values, and which of them are at risk.

use std::collections::BTreeSet;

use lone_verify::{Ranges, Risk, ValueRange};
use serde::Serialize;

use crate::failure::Failure;
use crate::quantity::counted;
use crate::ui::Ui;

/// Most lines of values at risk.
const SHOWN: usize = 20;

/// Every value's range.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct RangesReport {
    values: Vec<RangeReport>,
}

#[derive(Debug, Serialize)]
struct RangeReport {
    #[serde(flatten)]
    range: ValueRange,
    risk: Option<Risk>,
}

impl RangesReport {
    pub(super) fn of(ranges: &Ranges) -> Self {
        let report = |range: &ValueRange| RangeReport { range: range.clone(), risk: range.risk() };
        RangesReport { values: ranges.values().iter().map(report).collect() }
    }

    pub(super) fn print(&self, ui: &Ui) -> Result<(), Failure> {
        let programs: BTreeSet<_> =
            self.values.iter().map(|value| (&value.range.package, &value.range.function)).collect();
        ui.heading("\nRanges")?;
        ui.line(format_args!(
            "  {} of {}",
            counted(self.values.len(), "value"),
            counted(programs.len(), "function")
        ))?;
        let reach = |report: &&RangeReport| report.range.reach();
        if let Some(nearest) = self.values.iter().max_by(|a, b| reach(a).total_cmp(&reach(b))) {
            ui.line(format_args!("  nearest to its limit is {}", nearest.line()))?;
        }
        let at_risk: Vec<&RangeReport> = self.values.iter().filter(|value| value.risk.is_some()).collect();
        if at_risk.is_empty() {
            return ui.line("  none is at risk");
        }
        ui.line(format_args!("  at risk {}:", if at_risk.len() == 1 { "is" } else { "are" }))?;
        for value in at_risk.iter().take(SHOWN) {
            ui.line(format_args!("    {}", value.line()))?;
        }
        match at_risk.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => ui.line(format_args!("    and {more} more, all of which --json lists")),
        }
    }
}

impl RangeReport {
    fn line(&self) -> String {
        let ValueRange { package, function, value, op, limit, largest, .. } = &self.range;
        let mut line = format!("{value} ({op}, {function} of {package}): ");
        line += &match (self.range.nan, self.range.infinite, limit) {
            (0, 0, Some(limit)) => format!("up to {largest:.4} of {limit}"),
            (0, _, None) => format!("up to {largest:.4}"),
            (0, infinite, Some(limit)) => format!("{infinite} infinite, limit {limit}"),
            (nan, ..) => format!("{nan} not a number"),
        };
        if self.risk == Some(Risk::Subnormal) {
            line += &format!(", {:.2} % of its norm subnormal", 100.0 * self.range.flushed);
        }
        line
    }
}
