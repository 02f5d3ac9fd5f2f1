//! What the fake model should say: the whole sequence at once, from its tokens, without caches, masks or passes.

use super::{HEAD_DIM, HEADS, HIDDEN, TAPS, VOCAB};
use super::{attend, convolve, embedding, logit, norm, rotate, rounded};

/// Logits after each of `tokens`, with the sliding layer seeing `window` keys.
pub(crate) fn reference(tokens: &[u32], window: usize) -> Vec<Vec<f32>> {
    let mut hidden: Vec<[f64; HIDDEN]> = tokens.iter().map(|&token| embedding(token)).collect();
    for (chunk, window) in [usize::MAX, window].into_iter().enumerate() {
        hidden = convolution(&hidden, 2 * chunk);
        hidden = attention(&hidden, [0.7, 0.3][chunk], window);
        if chunk == 1 {
            hidden.iter_mut().for_each(|hidden| *hidden = norm(*hidden));
        }
        hidden.iter_mut().flatten().for_each(|x| *x = rounded(*x));
    }
    let logits = |hidden| (0..VOCAB).map(|token| rounded(logit(token, hidden)) as f32).collect();
    hidden.iter().map(logits).collect()
}

fn convolution(hidden: &[[f64; HIDDEN]], layer: usize) -> Vec<[f64; HIDDEN]> {
    let at = |position: usize, tap: usize, channel: usize| {
        let source = (position + tap).checked_sub(TAPS - 1);
        source.map_or(0.0, |source| rounded(hidden[source][channel]))
    };
    let output = |position: usize| {
        std::array::from_fn(|channel| {
            let inputs = std::array::from_fn(|tap| at(position, tap, channel));
            hidden[position][channel] + convolve(channel, layer, inputs)
        })
    };
    (0..hidden.len()).map(output).collect()
}

fn attention(hidden: &[[f64; HIDDEN]], frequency: f32, window: usize) -> Vec<[f64; HIDDEN]> {
    let angle = |position: usize| position as f32 * frequency;
    let table = |of: fn(f32) -> f32, position| rounded(f64::from(of(angle(position))));
    let rotated = |position: usize, head: usize| {
        let x = hidden[position];
        rotate([x[2 * head], x[2 * head + 1]], table(f32::cos, position), table(f32::sin, position))
    };
    let output = |position: usize| {
        let first = (position + 1).saturating_sub(window);
        let mut out = hidden[position];
        for head in 0..HEADS {
            let query = rotated(position, head);
            let attended = attend((first..=position).map(|key| {
                let [a, b] = rotated(key, head).map(rounded);
                let value = [2 * head, 2 * head + 1].map(|row| rounded(hidden[key][row]));
                (query[0] * a + query[1] * b, value)
            }));
            for element in 0..HEAD_DIM {
                out[HEAD_DIM * head + element] += attended[element];
            }
        }
        out
    };
    (0..hidden.len()).map(output).collect()
}
