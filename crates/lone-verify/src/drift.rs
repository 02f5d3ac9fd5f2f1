//! One record compared with another: how far the candidate is from the reference, stage by stage.

use lone_lfm::Stage;
use serde::Serialize;

use crate::divergence::NEAR_TIE;
use crate::ranking::argmax;
use crate::{Record, Similarity};

/// How far a candidate is from a reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// Of the hidden states that both have, in order.
    pub stages: Vec<StageDrift>,
    /// Of the logits.
    pub logits: Similarity,
    /// Of the likeliest tokens.
    pub argmax: Agreement,
}

/// How alike the hidden states at one stage are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageDrift {
    /// Where in the network.
    pub stage: Stage,
    /// By their cosines.
    pub similarity: Similarity,
}

/// Where the likeliest token is the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// At how many positions it is.
    pub same: usize,
    /// Of how many.
    pub positions: usize,
    /// Where it is not.
    pub different: Vec<usize>,
    /// How many of those are near ties to the reference.
    pub near_ties: usize,
}

impl Drift {
    /// Of two records of the same tokens and positions.
    ///
    /// # Panics
    /// If they are not.
    pub fn between(reference: &Record, candidate: &Record) -> Self {
        assert_eq!(reference.tokens, candidate.tokens, "records of the same tokens");
        assert_eq!(reference.positions, candidate.positions, "records of the same positions");
        let positions = &reference.positions;
        let stages = reference.states.iter().filter_map(|state| {
            let rows = candidate.state(state.stage)?;
            Some(StageDrift { stage: state.stage, similarity: Similarity::of(positions, &state.rows, rows) })
        });
        Drift {
            stages: stages.collect(),
            logits: Similarity::of(positions, &reference.logits, &candidate.logits),
            argmax: Agreement::of(reference, candidate),
        }
    }
}

impl Agreement {
    fn of(reference: &Record, candidate: &Record) -> Self {
        let mut agreement =
            Agreement { same: 0, positions: reference.positions.len(), different: Vec::new(), near_ties: 0 };
        for (row, &position) in reference.positions.iter().enumerate() {
            let logits = reference.logits_of(row);
            let (expected, found) = (argmax(logits), argmax(candidate.logits_of(row)));
            if expected.id == found.id {
                agreement.same += 1;
                continue;
            }
            agreement.different.push(position);
            let margin = expected.logit - logits[found.id as usize];
            agreement.near_ties += usize::from(margin < NEAR_TIE);
        }
        agreement
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    fn record(states: &[(Stage, [f32; 4])], logits: [f32; 6]) -> Record {
        let states =
            states.iter().map(|(stage, rows)| State { stage: *stage, rows: rows.to_vec() }).collect();
        Record { tokens: vec![1, 2, 3], positions: vec![0, 2], states, logits: logits.to_vec() }
    }

    #[test]
    fn stages_are_compared_where_both_have_them() {
        let (rows, turned) = ([1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]);
        let reference = record(&[(Stage::Embeddings, rows), (Stage::Layer(0), rows)], [1.0; 6]);
        let candidate = record(&[(Stage::Layer(0), turned), (Stage::Final, rows)], [1.0; 6]);
        let drift = Drift::between(&reference, &candidate);
        assert_eq!(drift.stages.len(), 1);
        let StageDrift { stage, similarity } = drift.stages[0];
        assert_eq!((stage, similarity.worst, similarity.worst_position), (Stage::Layer(0), 0.0, 2));
        assert_eq!((drift.logits.mean, drift.argmax.same), (1.0, 2));
    }

    #[test]
    fn another_likeliest_token_is_counted_and_near_ties_apart() {
        let reference = record(&[], [2.0, 1.95, 0.0, 2.0, 0.0, 1.0]);
        let candidate = record(&[], [1.0, 2.0, 0.0, 0.0, 0.0, 1.0]);
        let expected = Agreement { same: 0, positions: 2, different: vec![0, 2], near_ties: 1 };
        assert_eq!(Drift::between(&reference, &candidate).argmax, expected);
    }
}
