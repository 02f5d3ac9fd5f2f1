//! How a prompt is cut into passes: the cheapest cover by the sizes there are, of which only the last may be padded.

use std::cmp::Reverse;

/// What a pass costs besides its tokens, in tokens: reading the weights once takes as long as computing so many.
const PASS_TOKENS: usize = 32;

/// Within so many of the largest passes from the end all covers are compared; before that the largest pass is the
/// cheapest for each token.
const COMPARED_PASSES: usize = 4;

/// Which of `sizes` the cheapest cover of `tokens` tokens begins with, the largest among equals.
///
/// Costs are a model and not measured, so that a prompt is always cut in the same way. What is left is covered
/// likewise: asking again after each pass follows one cover to its end.
///
/// # Panics
/// If there are no sizes, or no tokens.
pub(crate) fn first_size(sizes: &[usize], tokens: usize) -> usize {
    let largest = *sizes.iter().max().expect("there is a size");
    if tokens > COMPARED_PASSES * largest {
        return largest;
    }
    // The cost of covering each number of tokens, and the size to begin with.
    let mut covers = vec![(0, Reverse(0))];
    for rest in 1..=tokens {
        let cover = |&size: &usize| (PASS_TOKENS + size + covers[rest.saturating_sub(size)].0, Reverse(size));
        let cheapest = sizes.iter().map(cover).min();
        covers.push(cheapest.expect("there is a size"));
    }
    covers[tokens].1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sizes of a cover, in order.
    fn cover(sizes: &[usize], tokens: usize) -> Vec<usize> {
        let mut rest = tokens;
        let mut cover = Vec::new();
        while rest > 0 {
            let size = first_size(sizes, rest);
            cover.push(size);
            rest = rest.saturating_sub(size);
        }
        cover
    }

    #[test]
    fn a_remainder_is_one_padded_pass_and_not_many_of_one_token() {
        assert_eq!(cover(&[1, 64], 255), [64; 4]);
        assert_eq!(cover(&[1, 64], 64), [64]);
        assert_eq!(cover(&[1], 3), [1; 3]);
    }

    #[test]
    fn a_small_remainder_takes_a_small_pass() {
        assert_eq!(cover(&[1, 16, 64], 64 + 10), [64, 16]);
        assert_eq!(cover(&[1, 16, 64], 64 + 1), [64, 1]);
        assert_eq!(cover(&[1, 16, 64], 5), [16]);
        assert_eq!(cover(&[1, 16, 64], 33), [64]);
        assert_eq!(cover(&[1, 16, 64], 1000)[..15], [64; 15]);
    }

    #[test]
    fn no_cover_is_cheaper() {
        let cost = |cover: &[usize]| cover.iter().map(|size| PASS_TOKENS + size).sum::<usize>();
        let sizes = [1, 5, 12];
        for tokens in 1..=48 {
            let counts =
                (0..=tokens).flat_map(|a| (0..=10).flat_map(move |b| (0..=4).map(move |c| [a, b, c])));
            let covers = counts.filter(|[a, b, c]| a + 5 * b + 12 * c >= tokens);
            let cheapest = covers.map(|[a, b, c]| cost(&vec![1; a]) + cost(&vec![5; b]) + cost(&vec![12; c]));
            assert_eq!(cost(&cover(&sizes, tokens)), cheapest.min().unwrap(), "{tokens} tokens");
        }
    }
}
