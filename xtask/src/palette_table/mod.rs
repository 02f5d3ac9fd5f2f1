//! What palettes cost: bundles of a checkpoint that has an exam, stored in several ways, held against its f32 forward.
//!
//! Logits are compared at every position of the exam's conversations with their answers, on the CPU backend. The text
//! that palettes are fitted to is the one that comes with lone, which holds no question of the exams.

mod arm;
mod measure;

use std::fmt;
use std::path::Path;

use lone_convert::WeightPrecision;

pub use arm::{Arm, Fit};
pub use measure::measure;

/// What was measured of one checkpoint.
#[derive(Debug, Clone)]
pub struct Report {
    /// The checkpoint's directory.
    pub model: String,
    /// Positions that logits were compared at.
    pub positions: usize,
    /// Every arm, [`Arm::all`].
    pub rows: Vec<Row>,
}

/// One way to store the weights.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Which.
    pub arm: Arm,
    /// Of the whole bundle.
    pub bytes: u64,
    /// 1 - cosine of the logits, mean over all positions.
    pub mean: f64,
    /// 1 - cosine of the logits, at the worst position.
    pub worst: f64,
    /// Share of the exam's questions that are answered rightly.
    pub score: f64,
}

impl Report {
    /// Measures the checkpoint in `model`, with every `step`th question of its exam.
    ///
    /// # Errors
    /// If the checkpoint cannot be read, converted or run, or has no exam.
    pub fn compute(model: &Path, step: usize) -> anyhow::Result<Report> {
        measure(model, step, &Arm::all())
    }

    /// The mean of the plain arm of a width: what the others are held against.
    pub fn plain(&self, precision: WeightPrecision) -> Option<f64> {
        let is_plain = |row: &&Row| row.arm == Arm { precision, fit: Fit::Plain };
        self.rows.iter().find(is_plain).map(|row| row.mean)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {} positions", self.model, self.positions)?;
        writeln!(f)?;
        writeln!(
            f,
            "| weights | palettes | bundle | mean cosine | 1 - mean | of plain | worst cosine | exam |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        for Row { arm, bytes, mean, worst, score } in &self.rows {
            let share = self.plain(arm.precision).map_or_else(String::new, |p| format!("{:.2}", mean / p));
            write!(f, "| {} | {} | {:.3} MB ", arm.precision, arm.fit, *bytes as f64 / 1e6)?;
            write!(f, "| {:.6} | {mean:.2e} | {share} ", 1.0 - mean)?;
            writeln!(f, "| {:.4} | {score:.4} |", 1.0 - worst)?;
        }
        Ok(())
    }
}
