//! A text and its tokens, with the places where both can be cut.

use serde::{Deserialize, Serialize};

/// `tokens` spell `text`, and so do the tokens before each seam the text before it.
///
/// It may come from a file: lengths are looked at before they are relied upon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Transcript {
    text: String,
    tokens: Vec<u32>,
    /// Ascending.
    seams: Vec<Seam>,
}

/// Lengths up to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Seam {
    text_bytes: usize,
    tokens: usize,
}

impl Transcript {
    pub(super) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The tokens of the longest beginning of `text` that is here up to a seam, and the rest of `text`.
    pub(super) fn split<'a>(&self, text: &'a str) -> (&[u32], &'a str) {
        let common = self.seams.iter().rev().find_map(|seam| {
            let kept = self.text.get(..seam.text_bytes)?;
            Some((self.tokens.get(..seam.tokens)?, text.strip_prefix(kept)?))
        });
        common.unwrap_or((&[], text))
    }

    /// Becomes `text` and `tokens`, which begin as [`Transcript::split`] said; a seam is at their end.
    pub(super) fn replace(&mut self, text: String, tokens: Vec<u32>) {
        let kept = self.split(&text).0.len();
        self.seams.retain(|seam| seam.tokens <= kept && text.is_char_boundary(seam.text_bytes));
        self.seams.push(Seam { text_bytes: text.len(), tokens: tokens.len() });
        (self.text, self.tokens) = (text, tokens);
    }

    /// Goes on with `tokens`, which spell `text`; a seam is at their end.
    pub(super) fn push(&mut self, text: &str, tokens: &[u32]) {
        self.text.push_str(text);
        self.tokens.extend_from_slice(tokens);
        self.seams.push(Seam { text_bytes: self.text.len(), tokens: self.tokens.len() });
    }

    /// Takes the last [`Transcript::push`] back, and the [`Transcript::replace`] before it: what they had in common
    /// with what was there before stays.
    pub(super) fn take_back(&mut self) {
        self.seams.truncate(self.seams.len().saturating_sub(2));
        let kept = self.seams.last().and_then(|seam| {
            Some((self.text.get(..seam.text_bytes)?.to_owned(), self.tokens.get(..seam.tokens)?.to_vec()))
        });
        (self.text, self.tokens) = kept.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transcript() -> Transcript {
        let mut transcript = Transcript::default();
        transcript.replace("question ".into(), vec![1, 2]);
        transcript.push("answer", &[3, 4, 5]);
        transcript
    }

    #[test]
    fn a_text_that_goes_on_keeps_all_tokens() {
        assert_eq!(transcript().split("question answer more"), (&[1, 2, 3, 4, 5][..], " more"));
    }

    #[test]
    fn a_text_that_differs_keeps_the_tokens_up_to_the_seam_before() {
        assert_eq!(transcript().split("question answered"), (&[1, 2, 3, 4, 5][..], "ed"));
        assert_eq!(transcript().split("question ANSWER more"), (&[1, 2][..], "ANSWER more"));
        assert_eq!(transcript().split("Question answer"), (&[][..], "Question answer"));
    }

    #[test]
    fn a_replaced_text_has_only_the_seams_it_shares() {
        let mut transcript = transcript();
        transcript.replace("question else".into(), vec![1, 2, 9]);
        assert_eq!(transcript.split("question answer").0, [1, 2]);
        assert_eq!(transcript.split("question else, more").0, [1, 2, 9]);
    }

    #[test]
    fn what_is_taken_back_is_gone_and_what_was_before_stays() {
        let mut transcript = transcript();
        transcript.replace("question answer, more".into(), vec![1, 2, 3, 4, 5, 6, 7]);
        transcript.push("!", &[8]);
        transcript.take_back();
        assert_eq!(transcript, self::transcript());
        transcript.replace("question else".into(), vec![1, 2, 9]);
        transcript.push("!", &[8]);
        transcript.take_back();
        assert_eq!((transcript.text.as_str(), transcript.tokens()), ("question ", &[1, 2][..]));
        transcript.take_back();
        transcript.take_back();
        assert_eq!(transcript, Transcript::default());
    }

    #[test]
    fn seams_that_lie_are_passed_over() {
        let seams = [(0, 9), (99, 1), (2, 1)].map(|(text_bytes, tokens)| Seam { text_bytes, tokens });
        let transcript = Transcript { text: "aéb".into(), tokens: vec![1], seams: seams.into() };
        assert_eq!(transcript.split("aéb"), (&[][..], "aéb"));
        let mut transcript = transcript;
        transcript.take_back();
        assert_eq!(transcript.split("aéb"), (&[][..], "aéb"));
    }
}
