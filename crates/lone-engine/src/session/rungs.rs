//! The context lengths a session may go through, shortest first, and why there are no more.

use lone_bundle::Bundle;

use super::SessionOptions;
use crate::RequestError;

#[derive(Debug, Clone)]
pub(crate) struct Rungs {
    /// Ascending; at least one.
    allowed: Vec<usize>,
    /// The first one that takes more memory than is allowed.
    over_budget: Option<OverBudget>,
}

#[derive(Debug, Clone, Copy)]
struct OverBudget {
    ctx: usize,
    bytes: u64,
    budget_bytes: u64,
}

impl Rungs {
    /// Those of `contexts`, ascending, that `options` leave.
    pub(crate) fn new(
        bundle: &Bundle,
        contexts: &[usize],
        options: &SessionOptions,
    ) -> Result<Self, RequestError> {
        let longest = options.ctx.or(contexts.last().copied()).unwrap_or_default();
        if !contexts.contains(&longest) {
            return Err(RequestError::Setting {
                field: "ctx",
                found: longest.to_string(),
                allowed: "a context length the bundle was converted and loaded for",
            });
        }
        let budget_bytes = options.kv_budget_bytes.unwrap_or(u64::MAX);
        let asked = contexts.iter().copied().filter(|ctx| *ctx <= longest);
        let (allowed, refused): (Vec<_>, Vec<_>) =
            asked.partition(|&ctx| bundle.cache_bytes(ctx) <= budget_bytes);
        let over_budget =
            refused.first().map(|&ctx| OverBudget { ctx, bytes: bundle.cache_bytes(ctx), budget_bytes });
        match over_budget {
            Some(over_budget) if allowed.is_empty() => Err(over_budget.error(over_budget.ctx)),
            _ => Ok(Rungs { allowed, over_budget }),
        }
    }

    pub(crate) fn shortest(&self) -> usize {
        self.allowed[0]
    }

    pub(crate) fn longest(&self) -> usize {
        *self.allowed.last().expect("there is one")
    }

    /// The shortest context that holds `tokens`.
    ///
    /// # Errors
    /// [`RequestError::PromptTooLong`] or [`RequestError::OverBudget`] if none does.
    pub(crate) fn holding(&self, tokens: usize) -> Result<usize, RequestError> {
        let rung = self.allowed.iter().find(|ctx| **ctx >= tokens).copied();
        rung.ok_or_else(|| match self.over_budget {
            Some(over_budget) => over_budget.error(tokens),
            None => RequestError::PromptTooLong { tokens, ctx: self.longest() },
        })
    }
}

impl OverBudget {
    fn error(self, tokens: usize) -> RequestError {
        let OverBudget { ctx, bytes, budget_bytes } = self;
        RequestError::OverBudget { tokens, ctx, bytes, budget_bytes }
    }
}

impl SessionOptions {
    /// Whether a session of `bundle` can hold a prompt of `tokens` tokens; told without loading anything.
    ///
    /// # Errors
    /// [`RequestError`], with the numbers.
    pub fn check_length(&self, bundle: &Bundle, tokens: usize) -> Result<(), RequestError> {
        Rungs::new(bundle, &bundle.contexts(), self)?.holding(tokens).map(drop)
    }
}
