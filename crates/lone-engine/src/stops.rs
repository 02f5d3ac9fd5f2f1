//! Stop strings, looked for while text streams.
//!
//! The text ends before the first stop string that is complete, or of several that are complete at the same
//! character, before the longest. What could still become one is held back, so nothing past a stop is ever let out,
//! and what is let out does not depend on how the text came in pieces.

use crate::RequestError;

/// Looks for stop strings in one answer's text.
#[derive(Debug, Clone)]
pub(crate) struct Stops {
    stops: Vec<String>,
    /// Text that is not let out yet: it may be the beginning of a stop.
    held: String,
}

/// What became of a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Released {
    pub(crate) text: String,
    /// A stop string followed; there is nothing more to say.
    pub(crate) is_stopped: bool,
}

impl Stops {
    pub(crate) fn new(stops: Vec<String>) -> Result<Self, RequestError> {
        if stops.iter().any(String::is_empty) {
            return Err(RequestError::EmptyStop);
        }
        Ok(Stops { stops, held: String::new() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stops.is_empty()
    }

    /// Takes more text and lets out what can be.
    pub(crate) fn push(&mut self, text: &str) -> Released {
        for character in text.chars() {
            self.held.push(character);
            let complete = self.stops.iter().filter(|stop| self.held.ends_with(stop.as_str()));
            if let Some(longest) = complete.map(String::len).max() {
                self.held.truncate(self.held.len() - longest);
                return Released { text: self.finish(), is_stopped: true };
            }
        }
        let may_begin = |start: usize| self.stops.iter().any(|stop| stop.starts_with(&self.held[start..]));
        let mut boundaries = self.held.char_indices().map(|(at, _)| at);
        let keep = boundaries.find(|&start| may_begin(start)).unwrap_or(self.held.len());
        let text = self.held.drain(..keep).collect();
        Released { text, is_stopped: false }
    }

    /// What is held back, when no more text comes.
    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stops(stops: &[&str]) -> Stops {
        Stops::new(stops.iter().map(ToString::to_string).collect()).unwrap()
    }

    fn stream(mut stops: Stops, pieces: &[&str]) -> (String, bool) {
        let mut text = String::new();
        for piece in pieces {
            let released = stops.push(piece);
            text.push_str(&released.text);
            if released.is_stopped {
                return (text, true);
            }
        }
        (text + &stops.finish(), false)
    }

    #[test]
    fn a_stop_across_pieces_is_found_and_nothing_of_it_let_out() {
        assert_eq!(stream(stops(&["END"]), &["one E", "N", "D two"]), ("one ".into(), true));
        assert_eq!(stream(stops(&["END"]), &["one E", "N", "d two"]), ("one ENd two".into(), false));
    }

    #[test]
    fn what_may_begin_a_stop_is_held_back_and_no_more() {
        let mut stops = stops(&["abab!"]);
        assert_eq!(stops.push("xabab").text, "x");
        assert_eq!(stops.push("ab").text, "ab");
        assert_eq!(stops.push("c").text, "ababc");
        assert_eq!(stops.push("a").text, "");
        assert_eq!(stops.finish(), "a");
    }

    #[test]
    fn the_first_complete_stop_ends_the_text() {
        assert_eq!(stream(stops(&["b", "abc"]), &["xabc"]), ("xa".into(), true));
        assert_eq!(stream(stops(&["c", "abc"]), &["xabc"]), ("x".into(), true));
    }

    #[test]
    fn characters_of_several_bytes_are_never_cut() {
        assert_eq!(stream(stops(&["é!"]), &["caf", "é", "é", "!"]), ("café".into(), true));
        assert_eq!(stream(stops(&["日本"]), &["日", "日", "本語"]), ("日".into(), true));
    }

    #[test]
    fn an_empty_stop_is_refused() {
        assert_eq!(Stops::new(vec![String::new()]).unwrap_err(), RequestError::EmptyStop);
    }

    proptest! {
        #[test]
        fn how_the_text_is_cut_into_pieces_makes_no_difference(
            text in "[ab]{0,12}",
            wanted in prop::collection::vec("[ab]{1,4}", 0..4),
            cuts in prop::collection::vec(0usize..12, 0..4),
        ) {
            let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]).collect();
            let end = |end: &usize| wanted.iter().filter(|stop| text[..*end].ends_with(**stop)).map(|stop| stop.len()).max();
            let expected = (0..=text.len()).find_map(|at| end(&at).map(|length| &text[..at - length]));
            let found = stream(stops(&wanted), &pieces);
            prop_assert_eq!(found, (expected.unwrap_or(&text).to_string(), expected.is_some()));
        }
    }
}
