//! What a comparison came to, for people and for programs.

use lone_bundle::{LayerKind, Role};
use lone_lfm::{SpecialText, Stage, Tokenizer};
use lone_verify::{Agreement, Similarity, likeliest};
use serde::Serialize;

use super::answer::AnswerReport;
use super::contest::{Contest, Outcome};
use super::ranges::RangesReport;
use crate::args::VerifyArgs;
use crate::failure::{Failure, UserError};
use crate::quantity::counted;
use crate::ui::Ui;

/// How many of the likeliest tokens are shown side by side.
const SHOWN_TOKENS: usize = 5;
/// How many positions are named before it becomes a wall of numbers.
const SHOWN_POSITIONS: usize = 8;

/// The whole of it.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) model: String,
    pub(super) bundle: String,
    pub(super) backend: &'static str,
    pub(super) function: Role,
    pub(super) reference: &'static str,
    /// Tokens read, the answer's included.
    tokens: usize,
    /// By passes of each size; all else is of the first that was least alike.
    passes: Vec<PassReport>,
    /// Files that were compared with their hashes.
    files: usize,
    pub(super) logits: LogitsReport,
    pub(super) hidden: Vec<StageReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<AnswerReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranges: Option<RangesReport>,
    pub(super) min_cos: f64,
    passed: bool,
}

/// How alike the logits are by passes of one size.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PassReport {
    /// Tokens a pass.
    pub(super) tokens: usize,
    pub(super) cosine: Similarity,
}

#[derive(Debug, Serialize)]
pub(super) struct LogitsReport {
    pub(super) cosine: Similarity,
    argmax: Agreement,
    /// What may follow the last position of the prompt, likeliest first.
    top: Vec<RankReport>,
}

#[derive(Debug, Serialize)]
struct RankReport {
    reference: TokenReport,
    bundle: TokenReport,
}

/// A token, as text where there is a tokenizer.
#[derive(Debug, Serialize)]
pub(super) struct TokenReport {
    pub(super) id: u32,
    pub(super) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logit: Option<f32>,
}

/// Hidden states at one stage.
#[derive(Debug, Serialize)]
pub(super) struct StageReport {
    pub(super) stage: String,
    pub(super) kind: Option<LayerKind>,
    pub(super) cosine: Similarity,
}

impl Report {
    pub(super) fn new(
        args: &VerifyArgs,
        contest: &Contest,
        backend: &'static str,
        outcome: &Outcome,
    ) -> Self {
        let drift = &outcome.drift;
        let facts = &contest.bundle.model;
        let hidden = drift.stages.iter().map(|drift| StageReport::new(drift.stage, drift.similarity, facts));
        Report {
            model: facts.name.clone(),
            bundle: contest.dir.display().to_string(),
            backend,
            function: contest.role,
            reference: contest.rival(),
            tokens: outcome.candidate.tokens.len(),
            passes: outcome.passes.clone(),
            files: contest.bundle.files.len(),
            hidden: hidden.collect(),
            answer: AnswerReport::of(contest, outcome),
            ranges: outcome.ranges.as_ref().map(RangesReport::of),
            min_cos: args.min_cos,
            passed: drift.logits.mean >= args.min_cos,
            logits: LogitsReport {
                cosine: drift.logits,
                argmax: drift.argmax.clone(),
                top: ranks(outcome, contest.tokenizer.as_deref()),
            },
        }
    }

    /// Whether the bundle will do.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if self.passed {
            return Ok(());
        }
        let (mean, least) = (below(self.logits.cosine.mean, self.min_cos), self.min_cos);
        let message =
            format!("the bundle is not close enough: mean cosine of logits {mean}, and not {least}");
        Err(UserError { message, hint: None }.into())
    }

    pub(super) fn print(&self, ui: &Ui) -> Result<(), Failure> {
        let Report { model, backend, reference, .. } = self;
        ui.heading(format_args!("{model} on {backend}, against {reference}"))?;
        self.print_passes(ui)?;
        ui.line(format_args!("  all {} are as written", counted(self.files, "file")))?;
        self.logits.print(ui)?;
        print_hidden(&self.hidden, ui)?;
        if let Some(answer) = &self.answer {
            answer.print(ui)?;
        }
        if let Some(ranges) = &self.ranges {
            ranges.print(ui)?;
        }
        if self.passed {
            let (mean, least) = (self.logits.cosine.mean, self.min_cos);
            ui.line(format_args!(
                "\nClose enough: mean cosine of logits {mean:.7}, at least {least} is asked."
            ))?;
        }
        Ok(())
    }

    /// What was read, and how, in as many lines as there are sizes.
    fn print_passes(&self, ui: &Ui) -> Result<(), Failure> {
        let function = format!("{:?}", self.function).to_lowercase();
        let what = format!("{} by {function} passes", counted(self.tokens, "token"));
        if let [pass] = &self.passes[..] {
            return ui.line(format_args!("  {what} of {}", counted(pass.tokens, "token")));
        }
        ui.line(format_args!("  {what}; what follows is of the size that is least alike"))?;
        self.passes.iter().try_for_each(|PassReport { tokens, cosine }| {
            ui.line(format_args!("    of {tokens:>5}  mean cosine of logits {:.7}", cosine.mean))
        })
    }
}

/// The likeliest tokens after the last position that both were given.
fn ranks(outcome: &Outcome, tokenizer: Option<&Tokenizer>) -> Vec<RankReport> {
    let positions = &outcome.reference.positions;
    let row = positions.partition_point(|&position| position < outcome.prompt_tokens) - 1;
    let top = |record: &lone_verify::Record| likeliest(record.logits_of(row), SHOWN_TOKENS);
    let pairs = top(&outcome.reference).into_iter().zip(top(&outcome.candidate));
    let token = |ranked: lone_verify::Ranked| TokenReport {
        logit: Some(ranked.logit),
        ..TokenReport::new(ranked.id, tokenizer)
    };
    pairs.map(|(a, b)| RankReport { reference: token(a), bundle: token(b) }).collect()
}

impl LogitsReport {
    fn print(&self, ui: &Ui) -> Result<(), Failure> {
        let Similarity { mean, worst, worst_position, last } = self.cosine;
        ui.heading("\nLogits")?;
        ui.line(format_args!(
            "  cosine     mean {mean:.7}, worst {worst:.7} at position {worst_position}, last {last:.7}"
        ))?;
        ui.line(format_args!("  likeliest  {}", self.agreement()))?;
        ui.line(format_args!("\n  next token   {:<30} bundle", "reference"))?;
        for (rank, RankReport { reference, bundle }) in self.top.iter().enumerate() {
            let rank = rank + 1;
            ui.line(format_args!("  {rank:>10}   {:<30} {}", reference.with_logit(), bundle.with_logit()))?;
        }
        Ok(())
    }

    fn agreement(&self) -> String {
        let Agreement { same, positions, different, near_ties } = &self.argmax;
        let mut text = format!("the same at {same} of {}", counted(*positions, "position"));
        if !different.is_empty() {
            let shown: Vec<String> =
                different.iter().take(SHOWN_POSITIONS).map(ToString::to_string).collect();
            let more = if different.len() > SHOWN_POSITIONS { ", …" } else { "" };
            text += &format!("; not at {}{more}: {}", shown.join(", "), counted(*near_ties, "near tie"));
        }
        text
    }
}

impl TokenReport {
    pub(super) fn new(id: u32, tokenizer: Option<&Tokenizer>) -> Self {
        let text = tokenizer.map(|tokenizer| tokenizer.decode(&[id], SpecialText::Keep));
        TokenReport { id, text, logit: None }
    }

    /// The token as people read it.
    pub(super) fn shown(&self) -> String {
        self.text.as_ref().map_or_else(|| self.id.to_string(), |text| format!("{text:?}"))
    }

    fn with_logit(&self) -> String {
        format!("{:>8.3}  {}", self.logit.unwrap_or_default(), self.shown())
    }
}

impl StageReport {
    fn new(stage: Stage, cosine: Similarity, facts: &lone_bundle::ModelFacts) -> Self {
        let (stage, kind) = match stage {
            Stage::Embeddings => ("embeddings".to_owned(), None),
            Stage::Layer(layer) => (format!("layer {layer}"), facts.layers.get(layer).copied()),
            Stage::Final => ("final norm".to_owned(), None),
        };
        StageReport { stage, kind, cosine }
    }
}

/// `cosine`, which is less than `least`, with as many digits as show that.
fn below(cosine: f64, least: f64) -> String {
    let usual = format!("{cosine:.7}");
    if usual.parse::<f64>().is_ok_and(|shown| shown >= least) { cosine.to_string() } else { usual }
}

fn print_hidden(stages: &[StageReport], ui: &Ui) -> Result<(), Failure> {
    ui.heading("\nHidden states, by their cosines")?;
    ui.line(format_args!("  {:<31} {:<10} worst", "", "mean"))?;
    for StageReport { stage, kind, cosine } in stages {
        let Similarity { mean, worst, worst_position, .. } = cosine;
        let kind = kind.map_or("", kind_in_words);
        ui.line(format_args!("  {stage:<11} {kind:<18}  {mean:.7}  {worst:.7} at {worst_position}"))?;
    }
    Ok(())
}

pub(super) fn kind_in_words(kind: LayerKind) -> &'static str {
    match kind {
        LayerKind::Conv => "convolution",
        LayerKind::FullAttention => "full attention",
        LayerKind::SlidingAttention => "sliding attention",
    }
}

#[cfg(test)]
mod tests {
    use super::below;

    #[test]
    fn a_cosine_that_is_too_small_looks_smaller() {
        assert_eq!(below(0.972_055_341, 0.999), "0.9720553");
        assert_eq!(below(0.999_999_98, 1.0), "0.99999998");
        assert_eq!(below(f64::NAN, 0.999), "NaN");
    }
}
