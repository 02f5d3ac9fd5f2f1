//! The bundle's greedy answer, and where the reference would have said something else.

use lone_lfm::SpecialText;
use lone_verify::Divergence;
use serde::Serialize;

use super::contest::{Contest, Outcome};
use super::report::TokenReport;
use crate::failure::Failure;
use crate::quantity::counted;
use crate::ui::Ui;

/// The answer.
#[derive(Debug, Serialize)]
pub(super) struct AnswerReport {
    token_ids: Vec<u32>,
    /// `null` for a model without a tokenizer.
    text: Option<String>,
    /// `null` where the reference would have said the same.
    divergence: Option<DivergenceReport>,
}

#[derive(Debug, Serialize)]
struct DivergenceReport {
    /// Which token of the answer, counting from 0.
    index: usize,
    reference: TokenReport,
    bundle: TokenReport,
    /// How far the reference puts its token before the bundle's, in logits.
    margin: f32,
    near_tie: bool,
}

impl AnswerReport {
    pub(super) fn of(contest: &Contest, outcome: &Outcome) -> Option<Self> {
        let answer = outcome.answer.as_ref()?;
        let tokenizer = contest.tokenizer.as_deref();
        let divergence = Divergence::first(&outcome.reference, outcome.prompt_tokens, answer);
        Some(AnswerReport {
            text: tokenizer.map(|tokenizer| tokenizer.decode(answer, SpecialText::Keep)),
            token_ids: answer.clone(),
            divergence: divergence.map(|divergence| DivergenceReport {
                index: divergence.index,
                reference: TokenReport::new(divergence.reference, tokenizer),
                bundle: TokenReport::new(divergence.candidate, tokenizer),
                margin: divergence.margin,
                near_tie: divergence.near_tie,
            }),
        })
    }

    pub(super) fn print(&self, ui: &Ui) -> Result<(), Failure> {
        ui.heading("\nGreedy answer")?;
        match &self.text {
            Some(text) => ui.line(format_args!("  {text:?}"))?,
            None => ui.line(format_args!("  {:?}", self.token_ids))?,
        }
        let tokens = counted(self.token_ids.len(), "token");
        let Some(divergence) = &self.divergence else {
            return ui.line(format_args!("  {tokens}, each the reference's choice"));
        };
        let DivergenceReport { index, reference, bundle, margin, near_tie } = divergence;
        let (reference, bundle) = (reference.shown(), bundle.shown());
        ui.line(format_args!("  token {} of {tokens} differs: {bundle}, and not {reference}", index + 1))?;
        let tie = if *near_tie { ": a near tie" } else { "" };
        ui.line(format_args!("  the reference puts {reference} before {bundle} by {margin:.3}{tie}"))
    }
}
