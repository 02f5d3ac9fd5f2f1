//! How far a bundle is from the checkpoint it was made of, and what that costs.
//!
//! A [`Record`] is what a model made of some tokens: hidden states by layer, and logits. The reference's is compared
//! with the candidate's by a [`Drift`]; a [`Divergence`] is where greedy answers part; [`Ranges`] show how close the
//! values of the programs come to the limits of fp16; an [`Exam`] counts right answers.
//!
//! Letters used throughout: D hidden size, L layers, V vocabulary.

#![forbid(unsafe_code)]

mod candidate;
mod divergence;
mod drift;
mod exam;
mod ranges;
mod ranking;
mod record;
mod similarity;
mod watch;

pub use candidate::{Candidate, VerifyError};
pub use divergence::{Divergence, NEAR_TIE};
pub use drift::{Agreement, Drift, StageDrift};
pub use exam::{
    Amount, Answer, BundleExaminee, CheckpointExaminee, Exam, ExamError, Examinee, Examiner, Marks, Paper,
    Question, Scores, Selection, Tally,
};
pub use ranges::{RangeWatch, Ranges, Risk, ValueRange};
pub use ranking::{Ranked, likeliest};
pub use record::{Record, RecordError, State, Transformers, TransformersError};
pub use similarity::{Similarity, cosine};
pub use watch::Watch;
