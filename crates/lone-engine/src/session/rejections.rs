//! Caches after passes of which a part was rejected, on real graphs, against caches that never saw what was rejected.

use std::path::Path;

use half::f16;
use lone_bundle::CacheKind;
use lone_convert::{ConvertOptions, convert};
use lone_cpu::{CpuBackend, CpuOptions};
use lone_lfm::Checkpoint;
use lone_mil::{Backend, Interpreter, Reference};

use super::*;
use crate::LoadOptions;

/// N: the passes have a token more.
const DRAFTS: usize = 4;

/// Positions tried: several times round the ring of 8 rows.
const POSITIONS: usize = 28;

/// Relative to the largest number of a cache, how far shapes may differ on the CPU.
const SHAPES_DIFFER: f32 = 2e-3;

/// Sessions of a small model with convolutions, full attention and rings, one after every token of a plain decode.
struct Plain {
    runtime: Runtime,
    tokens: Vec<u32>,
    /// After as many tokens as the index says.
    caches: Vec<Caches>,
}

/// A small model with a context of 40 tokens, whose passes check [`DRAFTS`] guesses.
pub(crate) fn load(backend: &dyn Backend) -> Runtime {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/micro/lfm3-window8");
    let parent = tempfile::tempdir().unwrap();
    let bundle = parent.path().join("bundle");
    let options = ConvertOptions {
        ctx: vec![40],
        prefill: vec![4],
        spec_drafts: Some(DRAFTS),
        ..ConvertOptions::default()
    };
    convert(&Checkpoint::open(&model).unwrap(), &bundle, &options, &mut ()).unwrap();
    Runtime::load(&bundle, backend, &LoadOptions::default()).unwrap()
}

impl Plain {
    fn new(backend: &dyn Backend) -> Self {
        let mut runtime = load(backend);
        let vocab_size = runtime.facts().vocab_size as u32;
        let tokens: Vec<u32> =
            (0..(POSITIONS + DRAFTS + 1) as u32).map(|i| (i * i * 31 + 7 * i + 3) % vocab_size).collect();
        let mut session = runtime.session(&SessionOptions::default()).unwrap();
        let mut caches = vec![session.caches.clone()];
        for token in &tokens {
            session.pass(&mut runtime, &[*token]).unwrap().commit(1);
            caches.push(session.caches.clone());
        }
        Plain { runtime, tokens, caches }
    }

    /// The session as it stands after `position` tokens.
    fn session(&self, position: usize) -> Session {
        let mut session = self.runtime.session(&SessionOptions::default()).unwrap();
        session.caches = self.caches[position].clone();
        session.tokens = self.tokens[..position].to_vec();
        session
    }

    /// A pass at `position` of which only the first `accepted` tokens are those of the plain decode.
    fn guesses(&self, position: usize, accepted: usize) -> Vec<u32> {
        let mut tokens = self.tokens[position..=position + DRAFTS].to_vec();
        let vocab_size = self.runtime.facts().vocab_size as u32;
        tokens[accepted..].iter_mut().for_each(|token| *token = (*token + 1) % vocab_size);
        tokens
    }
}

fn every_rejection() -> impl Iterator<Item = (usize, usize)> {
    (0..POSITIONS).flat_map(|position| (1..=DRAFTS + 1).map(move |accepted| (position, accepted)))
}

fn bits(caches: &Caches) -> Vec<Vec<u16>> {
    let segments = caches.segments();
    segments.map(|(_, segment)| segment.iter().map(|x| x.to_bits()).collect()).collect()
}

#[test]
fn on_the_reference_interpreter_caches_are_a_plain_decodes_to_the_bit() {
    let mut plain = Plain::new(&Interpreter::<Reference>::new());
    for (position, accepted) in every_rejection() {
        let mut session = plain.session(position);
        let guesses = plain.guesses(position, accepted);
        let pass = session.pass(&mut plain.runtime, &guesses).unwrap();
        assert_eq!(pass.pipeline().role, Role::Verify);
        pass.commit(accepted);
        let expected = &plain.caches[position + accepted];
        assert!(bits(&session.caches) == bits(expected), "{accepted} accepted at {position}");
    }
}

/// What cache number `cache` should be when `accepted` rows of `new`, as the pass at `position` returned them, are
/// written to what it was `before`.
fn written(
    kind: CacheKind,
    before: &[f16],
    new: &[f16],
    position: usize,
    accepted: usize,
    ctx: usize,
) -> Vec<f16> {
    let mut after = before.to_vec();
    match kind {
        CacheKind::Conv { channels, rows } => {
            let given = new.len() / channels;
            for (channel, after) in after.chunks_exact_mut(rows).enumerate() {
                after.copy_from_slice(&new[channel * given + accepted..][..rows]);
            }
        }
        CacheKind::Key { rows, kv_heads, head_dim } | CacheKind::Value { rows, kv_heads, head_dim } => {
            let (count, tokens) = (rows.count(ctx), new.len() / (kv_heads * head_dim));
            for (head, token) in (0..kv_heads).flat_map(|head| (0..accepted).map(move |token| (head, token)))
            {
                let row = head * count + (position + token) % count;
                let new = &new[(head * tokens + token) * head_dim..][..head_dim];
                after[row * head_dim..][..head_dim].copy_from_slice(new);
            }
        }
    }
    after
}

#[test]
fn on_the_cpu_caches_are_what_the_pass_returned_to_the_bit_and_near_a_plain_decodes() {
    let threads = std::num::NonZeroUsize::new(2);
    let mut plain = Plain::new(&CpuBackend::new(CpuOptions { threads, ..CpuOptions::default() }));
    for (position, accepted) in every_rejection() {
        let mut session = plain.session(position);
        let before = session.caches.clone();
        let kinds: Vec<CacheKind> = before.layout().caches.iter().map(|shape| shape.cache.kind).collect();
        let guesses = plain.guesses(position, accepted);
        let pass = session.pass(&mut plain.runtime, &guesses).unwrap();
        assert_eq!(pass.pipeline().role, Role::Verify);
        let new: Vec<(usize, Vec<f16>)> =
            pass.pipeline().renewals().map(|(cache, new)| (cache, new.to_vec())).collect();
        pass.commit(accepted);
        assert_eq!(new.len(), kinds.len());
        for (cache, new) in new {
            let [before, after, decoded] = [&before, &session.caches, &plain.caches[position + accepted]]
                .map(|caches| &caches.segment(cache, 0)[..]);
            let expected = written(kinds[cache], before, &new, position, accepted, 40);
            assert!(after == expected, "cache {cache}, {accepted} accepted at {position}");
            let largest = decoded.iter().map(|x| x.to_f32().abs()).fold(0.0, f32::max);
            let apart = after.iter().zip(decoded).map(|(a, b)| (a.to_f32() - b.to_f32()).abs());
            let apart = apart.fold(0.0, f32::max);
            assert!(
                apart <= SHAPES_DIFFER * largest,
                "cache {cache}, {accepted} accepted at {position}: {apart} of {largest}"
            );
        }
    }
}
