//! The vocabulary as grammars see it: the bytes of every token.

use std::sync::Arc;

use lone_lfm::Tokenizer;
use toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};

use super::{GrammarError, refuse};

/// The vocabulary of a model of `vocab_size` tokens. Tokens the tokenizer does not know are never allowed.
pub(super) fn environment(
    tokenizer: &Tokenizer,
    vocab_size: usize,
    stop_tokens: &[u32],
) -> Result<TokEnv, GrammarError> {
    let known: Vec<u32> =
        stop_tokens.iter().copied().filter(|&token| (token as usize) < vocab_size).collect();
    let Some(&first) = known.first() else {
        return Err(refuse("the model has no token that ends an answer"));
    };
    let size = u32::try_from(vocab_size).map_err(refuse)?;
    let words: Vec<Vec<u8>> = (0..size).map(|token| word(tokenizer, token)).collect();
    let trie = TokTrie::from(&TokRxInfo::new(size, first), &words).with_eos_tokens(&known);
    Ok(Arc::new(ApproximateTokEnv::new(trie)))
}

/// The bytes of a token. Special tokens are marked, so that no text matches them.
fn word(tokenizer: &Tokenizer, token: u32) -> Vec<u8> {
    let mut word = Vec::new();
    if tokenizer.is_special(token) {
        word.push(TokTrie::SPECIAL_TOKEN_MARKER);
    }
    word.extend(tokenizer.token_bytes(token).unwrap_or_default());
    word
}
