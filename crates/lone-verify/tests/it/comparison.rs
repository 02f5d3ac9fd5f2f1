//! Records of bundles beside those of checkpoints and of transformers.

use lone_bundle::Role;
use lone_verify::{Candidate, Divergence, Drift, Record, State};
use serde::Deserialize;

use crate::support::{Converted, MODELS, cpu, model, record};

/// How alike fp16 and f32 logits must be, at every position.
const LEAST_COSINE: f64 = 0.9999;

#[test]
fn a_bundle_follows_the_record_of_transformers_by_whatever_passes_it_reads() {
    for name in MODELS {
        let converted = Converted::new(name);
        let golden = converted.golden();
        for role in [Role::Decode, Role::Prefill, Role::Verify] {
            let mut runtime = converted.load(&cpu(), role);
            let drift = Drift::between(&golden, &record(&mut runtime, role, &golden));
            assert!(drift.logits.worst >= LEAST_COSINE, "{name} {role:?}: {:?}", drift.logits);
            assert_eq!(drift.stages.len(), golden.states.len(), "{name}");
            for stage in &drift.stages {
                assert!(stage.similarity.worst >= LEAST_COSINE, "{name} {role:?}: {stage:?}");
            }
            assert_eq!(drift.argmax.different.len(), drift.argmax.near_ties, "{name}: {:?}", drift.argmax);
        }
    }
}

#[test]
fn our_own_reference_is_that_of_transformers() {
    for name in MODELS {
        let converted = Converted::new(name);
        let golden = converted.golden();
        let all = Record::of_checkpoint(&converted.checkpoint, &golden.tokens, &()).unwrap();
        assert_eq!(all.states.len(), converted.checkpoint.config().layers.len() + 2);
        let row = |rows: &[f32], position: usize| {
            let width = rows.len() / all.positions.len();
            rows[position * width..][..width].to_vec()
        };
        let rows = |table: &[f32]| golden.positions.iter().flat_map(|&p| row(table, p)).collect::<Vec<_>>();
        let states = all.states.iter().map(|state| State { stage: state.stage, rows: rows(&state.rows) });
        let ours = Record { states: states.collect(), logits: rows(&all.logits), ..golden.clone() };
        let drift = Drift::between(&golden, &ours);
        assert!(drift.logits.worst > 1.0 - 1e-9, "{name}: {:?}", drift.logits);
        assert!(drift.stages.iter().all(|stage| stage.similarity.worst > 1.0 - 1e-9), "{name}: {drift:?}");
    }
}

#[derive(Deserialize)]
struct Case {
    prompt_ids: Vec<u32>,
    continuation_ids: Vec<u32>,
}

#[test]
fn greedy_answers_part_nowhere_or_at_near_ties() {
    for name in MODELS {
        let converted = Converted::new(name);
        let cases: Vec<Case> =
            serde_json::from_slice(&std::fs::read(model(name).join("greedy.json")).unwrap()).unwrap();
        let mut runtime = converted.load(&cpu(), Role::Decode);
        for case in cases.iter().step_by(10) {
            let mut candidate = Candidate::new(&mut runtime, Role::Decode).unwrap();
            candidate.read(&case.prompt_ids, &|_| true, &mut ()).unwrap();
            let answer = candidate.answer(64, &[7], &mut ()).unwrap();
            let found = candidate.into_record();
            assert_eq!(found.tokens.len() + 1, case.prompt_ids.len() + answer.len());
            let reference = Record::of_checkpoint(&converted.checkpoint, &found.tokens, &()).unwrap();
            match Divergence::first(&reference, case.prompt_ids.len(), &answer) {
                None => assert_eq!(answer, case.continuation_ids, "{name}"),
                Some(divergence) => assert!(divergence.near_tie, "{name}: {divergence:?}"),
            }
        }
    }
}

#[test]
fn an_answer_ends_where_the_context_does() {
    let converted = Converted::new("tiny-lfm3");
    let mut runtime = converted.load(&cpu(), Role::Decode);
    let mut candidate = Candidate::new(&mut runtime, Role::Decode).unwrap();
    candidate.read(&[5; 766], &|_| true, &mut ()).unwrap();
    assert_eq!(candidate.answer(100, &[], &mut ()).unwrap().len(), 3, "two are read and one more is chosen");
}
