//! Sessions of the fake model, whose every logit is known.

use lone_bundle::Role;
use proptest::prelude::*;

use super::*;
use crate::fake::{Spec, VOCAB, reference};

fn tokens(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| (7 * i * i + 3 * i + 1) % VOCAB as u32).collect()
}

fn start(spec: &Spec) -> (Runtime, Session) {
    let runtime = spec.load();
    let session = runtime.session(&SessionOptions::default()).unwrap();
    (runtime, session)
}

/// Extends by `more` and checks the logits that follow against the whole history's.
fn extend_and_check(spec: &Spec, runtime: &mut Runtime, session: &mut Session, more: &[u32]) {
    session.extend(runtime, more).unwrap();
    let expected = reference(session.tokens(), spec.window);
    assert_eq!(session.logits(), expected.last().map(Vec::as_slice), "after {:?}", session.tokens());
}

#[test]
fn every_shape_says_the_same_past_several_wraps_of_the_ring() {
    for ring in [true, false] {
        let spec = Spec { ring, ..Spec::default() };
        let tokens = tokens(40);
        let expected = reference(&tokens, spec.window);
        for role in [None, Some(Role::Decode), Some(Role::Prefill), Some(Role::Verify)] {
            let (mut runtime, mut session) = start(&spec);
            let mut seen = 0;
            let check = |observed: &crate::Observed<'_>| {
                assert_eq!(observed.position, seen);
                assert_eq!(observed.logits, expected[seen], "{role:?}, ring {ring}, position {seen}");
                seen += 1;
            };
            session.observe(&mut runtime, role, &tokens, check).unwrap();
            assert_eq!(seen, 40);
        }
    }
}

#[test]
fn passes_of_a_shape_that_is_asked_for_are_of_no_other() {
    let shapes = vec![(Role::Decode, 1), (Role::Prefill, 4), (Role::Prefill, 8)];
    let spec = Spec { shapes, ..Spec::default() };
    let tokens = tokens(9);
    let expected = reference(&tokens, spec.window);
    let passes = |shape| {
        let (mut runtime, mut session) = start(&spec);
        let check = |observed: &crate::Observed<'_>| {
            assert_eq!(observed.logits, expected[observed.position], "{shape:?}");
        };
        let observed = session.observe_by(&mut runtime, shape, &tokens, check);
        observed.map(|()| session.counters().passes)
    };
    assert_eq!(passes((Role::Prefill, 4)).unwrap(), 3);
    assert_eq!(passes((Role::Prefill, 8)).unwrap(), 2);
    let error = passes((Role::Prefill, 16)).unwrap_err().to_string();
    assert!(error.contains("Prefill of 16"), "{error}");
}

#[test]
fn the_last_block_of_a_prompt_is_one_padded_pass() {
    let (mut runtime, mut session) = start(&Spec::default());
    session.extend(&mut runtime, &tokens(23)).unwrap();
    assert_eq!(session.counters(), Counters { passes: 3, tokens: 23 });
    session.extend(&mut runtime, &tokens(9)).unwrap();
    assert_eq!(session.counters(), Counters { passes: 5, tokens: 32 });
}

#[test]
fn a_bundle_with_one_shape_reads_and_writes_with_it() {
    for (shape, passes) in [((Role::Decode, 1), 11), ((Role::Prefill, 8), 3)] {
        let spec = Spec { shapes: vec![shape], heads: vec![1], ..Spec::default() };
        let (mut runtime, mut session) = start(&spec);
        extend_and_check(&spec, &mut runtime, &mut session, &tokens(10));
        extend_and_check(&spec, &mut runtime, &mut session, &[3]);
        assert_eq!(session.counters(), Counters { passes, tokens: 11 });
    }
}

#[test]
fn rejected_rows_leave_no_trace_wherever_the_rejection_falls() {
    let spec = Spec::default();
    for position in 0..20 {
        for accepted in 0..=4 {
            let (mut runtime, mut session) = start(&spec);
            let (past, drafts) = (&tokens(24)[..position], &tokens(24)[position..position + 4]);
            if position > 0 {
                session.extend(&mut runtime, past).unwrap();
            }
            session.pass(&mut runtime, drafts).unwrap().commit(accepted);
            assert_eq!(session.position(), position + accepted);
            for more in [[9, 2], [4, 4], [0, 8], [1, 1]] {
                extend_and_check(&spec, &mut runtime, &mut session, &more);
            }
        }
    }
}

#[test]
fn going_back_ends_at_a_snapshot_and_the_session_goes_on_from_there() {
    let spec = Spec { contexts: vec![300], ..Spec::default() };
    let (mut runtime, mut session) = start(&spec);
    session.set_prompt(&mut runtime, &tokens(20)).unwrap();
    session.extend(&mut runtime, &tokens(180)).unwrap();
    assert_eq!(session.rewind(500), 200);
    assert_eq!(session.rewind(199), 196, "the block that passed 192 ended there");
    extend_and_check(&spec, &mut runtime, &mut session, &[5, 6, 7]);
    assert_eq!(session.rewind(196), 196);
    assert_eq!(session.rewind(63), 20, "the end of the prompt");
    let expected = reference(&tokens(20), spec.window);
    assert_eq!(session.logits(), Some(&expected[19][..]), "kept with the end of a turn");
    extend_and_check(&spec, &mut runtime, &mut session, &[5, 6, 7]);
    assert_eq!(session.rewind(19), 0);
    assert_eq!(session.logits(), None);
    extend_and_check(&spec, &mut runtime, &mut session, &[5, 6, 7]);
}

#[test]
fn a_history_that_was_changed_is_never_gone_back_to() {
    let spec = Spec::default();
    let (mut runtime, mut session) = start(&spec);
    session.set_prompt(&mut runtime, &tokens(10)).unwrap();
    session.extend(&mut runtime, &[1, 2, 3, 4]).unwrap();
    session.end_turn();
    assert_eq!(session.rewind(10), 10);
    session.extend(&mut runtime, &[5, 6, 7, 8, 9]).unwrap();
    assert_eq!(session.rewind(14), 10, "the snapshot at 14 was of other tokens");
    extend_and_check(&spec, &mut runtime, &mut session, &[9, 9]);
}

#[test]
fn a_new_prompt_runs_only_what_is_new() {
    let spec = Spec { contexts: vec![300], ..Spec::default() };
    let (mut runtime, mut session) = start(&spec);
    let mut history = tokens(50);
    assert_eq!(session.set_prompt(&mut runtime, &history).unwrap(), 0);
    assert_eq!(session.counters().tokens, 50);
    for token in [3, 1, 4, 1] {
        session.extend(&mut runtime, &[token]).unwrap();
        history.push(token);
    }
    history.extend([7, 2, 9, 9, 8, 1]);
    let before = session.counters();
    assert_eq!(session.set_prompt(&mut runtime, &history).unwrap(), 54);
    assert_eq!(session.counters(), Counters { passes: before.passes + 1, tokens: before.tokens + 6 });
    assert_eq!(session.logits(), reference(&history, spec.window).last().map(Vec::as_slice));
}

#[test]
fn the_same_prompt_again_costs_no_pass() {
    let (mut runtime, mut session) = start(&Spec::default());
    session.set_prompt(&mut runtime, &tokens(13)).unwrap();
    let first = session.logits().unwrap().to_vec();
    session.extend(&mut runtime, &[3, 3, 3, 3, 3, 3, 3, 3, 3]).unwrap();
    let counters = session.counters();
    assert_eq!(session.set_prompt(&mut runtime, &tokens(13)).unwrap(), 13);
    assert_eq!(session.counters(), counters);
    assert_eq!(session.logits(), Some(&first[..]));
}

#[test]
fn a_shortened_prompt_still_gets_its_logits() {
    let (mut runtime, mut session) = start(&Spec::default());
    session.set_prompt(&mut runtime, &tokens(13)).unwrap();
    assert_eq!(session.set_prompt(&mut runtime, &tokens(10)).unwrap(), 0);
    assert_eq!(session.logits(), reference(&tokens(10), 6).last().map(Vec::as_slice));
}

#[test]
fn a_full_context_is_an_error_with_the_numbers_and_changes_nothing() {
    let spec = Spec::default();
    let (mut runtime, mut session) = start(&spec);
    extend_and_check(&spec, &mut runtime, &mut session, &tokens(40));
    assert_eq!(session.remaining(), 0);
    let error = session.extend(&mut runtime, &[1, 2]).unwrap_err().to_string();
    assert_eq!(error, "the prompt has 42 tokens, and the context holds 40");
    let error = session.set_prompt(&mut runtime, &tokens(41)).unwrap_err().to_string();
    assert_eq!(error, "the prompt has 41 tokens, and the context holds 40");
    assert_eq!(session.tokens(), tokens(40));
}

#[test]
fn unknown_tokens_and_empty_prompts_are_refused() {
    let (mut runtime, mut session) = start(&Spec::default());
    let error = session.set_prompt(&mut runtime, &[1, 11]).unwrap_err().to_string();
    assert_eq!(error, "token 1 is 11, and the vocabulary has 11 entries");
    let error = session.set_prompt(&mut runtime, &[]).unwrap_err().to_string();
    assert_eq!(error, "the prompt is empty");
    assert_eq!(session.counters(), Counters::default());
}

#[test]
fn sessions_of_different_lengths_share_a_runtime() {
    let spec = Spec { contexts: vec![16, 40], ..Spec::default() };
    let mut runtime = spec.load();
    assert_eq!(runtime.contexts().collect::<Vec<_>>(), [16, 40]);
    let mut short = runtime.session(&SessionOptions { ctx: Some(16), ..SessionOptions::default() }).unwrap();
    let mut long = runtime.session(&SessionOptions::default()).unwrap();
    assert_eq!((short.ctx(), long.ctx()), (16, 40));
    assert_eq!((short.cache_bytes(), long.cache_bytes()), (16 * 16 + 128, 16 * 16 + 128));
    for token in tokens(16) {
        extend_and_check(&spec, &mut runtime, &mut short, &[token]);
        extend_and_check(&spec, &mut runtime, &mut long, &[token, token]);
    }
    assert_eq!((short.cache_bytes(), long.cache_bytes()), (16 * 16 + 128, 16 * 40 + 128));
    let error = runtime.session(&SessionOptions { ctx: Some(17), ..SessionOptions::default() }).unwrap_err();
    assert!(error.to_string().starts_with("ctx is 17"), "{error}");
}

/// A ladder of contexts of which each divides its caches differently.
fn ladder() -> Spec {
    Spec { contexts: vec![12, 20, 40, 90], segment_rows: 15, ..Spec::default() }
}

#[test]
fn a_session_moves_up_when_it_must_and_says_the_same_on_every_rung() {
    for block in [1, 2, 3, 5, 8, 13, 90] {
        let spec = ladder();
        let (mut runtime, mut session) = start(&spec);
        let mut rungs = vec![session.rung()];
        for more in tokens(90).chunks(block) {
            extend_and_check(&spec, &mut runtime, &mut session, more);
            assert!(session.rung() >= session.position());
            let smaller = runtime.contexts().filter(|ctx| *ctx < session.rung()).last().unwrap_or(0);
            assert!(session.position() > smaller, "{} tokens on {}", session.position(), session.rung());
            rungs.push(session.rung());
        }
        rungs.dedup();
        let expected: &[usize] = if block == 90 { &[12, 90] } else { &[12, 20, 40, 90] };
        assert_eq!(rungs, expected, "by {block}");
        assert_eq!(session.remaining(), 0);
    }
}

#[test]
fn every_role_climbs_the_ladder() {
    let spec = ladder();
    let tokens = tokens(90);
    let expected = reference(&tokens, spec.window);
    for role in [None, Some(Role::Decode), Some(Role::Prefill), Some(Role::Verify)] {
        let (mut runtime, mut session) = start(&spec);
        let mut seen = 0;
        let check = |observed: &crate::Observed<'_>| {
            assert_eq!(
                observed.logits, expected[observed.position],
                "{role:?}, position {}",
                observed.position
            );
            seen += 1;
        };
        session.observe(&mut runtime, role, &tokens, check).unwrap();
        assert_eq!((seen, session.rung()), (90, 90));
    }
}

#[test]
fn going_back_on_a_higher_rung_is_going_back() {
    let spec = ladder();
    let (mut runtime, mut session) = start(&spec);
    session.set_prompt(&mut runtime, &tokens(11)).unwrap();
    session.extend(&mut runtime, &tokens(40)).unwrap();
    assert_eq!((session.rewind(11), session.rung()), (11, 90));
    extend_and_check(&spec, &mut runtime, &mut session, &[4, 2]);
    assert_eq!((session.rewind(3), session.rung()), (0, 12), "what is empty is small again");
    extend_and_check(&spec, &mut runtime, &mut session, &tokens(30));
}

#[test]
fn a_budget_leaves_out_the_contexts_that_exceed_it() {
    let spec = ladder();
    let mut runtime = spec.load();
    let with = |kv_budget_bytes| SessionOptions {
        kv_budget_bytes: Some(kv_budget_bytes),
        ..SessionOptions::default()
    };
    let needed = |ctx: u64| 16 * ctx + 128;
    let mut session = runtime.session(&with(needed(40) + 15)).unwrap();
    assert_eq!(session.ctx(), 40);
    extend_and_check(&spec, &mut runtime, &mut session, &tokens(40));
    let expected = "41 tokens need caches for 90, which take 1568 bytes, and 783 are allowed";
    assert_eq!(session.extend(&mut runtime, &[1]).unwrap_err().to_string(), expected);
    assert_eq!(session.check_prompt(&runtime, &[1; 41]).unwrap_err().to_string(), expected);
    let error = runtime.session(&with(needed(12) - 1)).unwrap_err().to_string();
    assert_eq!(error, "12 tokens need caches for 12, which take 320 bytes, and 319 are allowed");
}

#[test]
fn every_layer_is_there_to_be_seen() {
    let (mut runtime, mut session) = start(&Spec::default());
    let mut by_shape = Vec::new();
    for role in [Role::Decode, Role::Prefill] {
        session.rewind(0);
        let mut seen = Vec::new();
        let visit = |observed: &crate::Observed<'_>| {
            seen.push(observed.embedding());
            seen.extend((0..4).map(|layer| observed.layer(layer).unwrap()));
            seen.push(observed.final_hidden());
            assert_eq!(observed.layer(4), None);
        };
        session.observe(&mut runtime, Some(role), &tokens(11), visit).unwrap();
        by_shape.push(seen);
    }
    assert_eq!(by_shape[0], by_shape[1]);
    assert_eq!(by_shape[0].len(), 66);
}

#[derive(Debug, Clone)]
enum Move {
    Extend(Vec<u32>),
    Pass(Vec<u32>, usize),
    Rewind(usize),
    Prompt(usize, Vec<u32>),
    EndTurn,
}

fn moves() -> impl Strategy<Value = Move> {
    let some = |most: usize| prop::collection::vec(0..VOCAB as u32, 1..=most);
    prop_oneof![
        some(40).prop_map(Move::Extend),
        (some(8), 0usize..=8).prop_map(|(tokens, accepted)| Move::Pass(tokens, accepted)),
        (0usize..150).prop_map(Move::Rewind),
        (0usize..60, some(9)).prop_map(|(kept, tokens)| Move::Prompt(kept, tokens)),
        Just(Move::EndTurn),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_is_done_to_a_session_its_logits_are_those_of_its_tokens(
        moves in prop::collection::vec(moves(), 1..24),
        ring: bool,
        window in 1usize..9,
        segment_rows in prop_oneof![Just(7usize), Just(1000)],
        contexts in prop_oneof![Just(vec![150]), Just(vec![9, 32, 150])],
    ) {
        let spec = Spec { contexts, window, ring, segment_rows, ..Spec::default() };
        let (mut runtime, mut session) = start(&spec);
        for step in moves {
            match step {
                Move::Extend(tokens) if tokens.len() <= session.remaining() => {
                    session.extend(&mut runtime, &tokens).unwrap();
                }
                Move::Pass(tokens, accepted) if tokens.len() <= session.remaining() => {
                    let accepted = accepted.min(tokens.len());
                    session.pass(&mut runtime, &tokens).unwrap().commit(accepted);
                }
                Move::Rewind(position) => {
                    let most = position.min(session.position());
                    let reached = session.rewind(position);
                    prop_assert!(reached <= most && reached == session.position());
                }
                Move::Prompt(kept, tokens) => {
                    let kept = kept.min(session.position()).min(140);
                    let prompt = [&session.tokens()[..kept], &tokens].concat();
                    session.set_prompt(&mut runtime, &prompt).unwrap();
                    prop_assert_eq!(session.tokens(), &prompt[..]);
                    prop_assert!(session.logits().is_some());
                }
                Move::EndTurn => session.end_turn(),
                Move::Extend(_) | Move::Pass(..) => {}
            }
            if let Some(logits) = session.logits() {
                let expected = reference(session.tokens(), window);
                prop_assert_eq!(logits, &expected.last().unwrap()[..]);
            }
        }
    }
}
