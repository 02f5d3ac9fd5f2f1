//! A suffix automaton that grows with a text: which of its last tokens stood together before, and where.
//!
//! A state is a set of substrings that end at the same places; its link leads to the longest suffix that ends at more
//! of them. After a token is added, the link of the whole text's state is the longest suffix that occurs twice. A
//! token adds at most two states and, over the whole text, three edges, so it costs a constant on average.

use std::collections::HashMap;

const ROOT: u32 = 0;
const NONE: u32 = u32::MAX;

/// Links followed to note where shorter suffixes stood last. More would find later places, at a cost for each token.
const NOTED: usize = 4;

/// The automaton of a text, and its longest suffix that occurs twice.
#[derive(Debug)]
pub(crate) struct SuffixAutomaton {
    text: Vec<u32>,
    states: Vec<State>,
    edges: HashMap<(u32, u32), Edge>,
    /// The state of the whole text.
    last: u32,
    found: Option<Match>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// Length of its longest substring.
    length: u32,
    link: u32,
    /// Tokens up to the end of a place where it stood, the latest that was noted.
    end: u32,
    /// The token of one of its edges; each edge names the next.
    token: u32,
}

#[derive(Debug, Clone, Copy)]
struct Edge {
    target: u32,
    /// The token of another edge of the same state.
    next_token: u32,
}

/// A suffix of the text that stood before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Match {
    /// Its tokens.
    pub(crate) length: usize,
    /// Where it ended before: the position of what followed.
    pub(crate) end: usize,
}

impl Default for SuffixAutomaton {
    fn default() -> Self {
        let root = State { length: 0, link: NONE, end: 0, token: NONE };
        SuffixAutomaton {
            text: Vec::new(),
            states: vec![root],
            edges: HashMap::new(),
            last: ROOT,
            found: None,
        }
    }
}

impl SuffixAutomaton {
    pub(crate) fn text(&self) -> &[u32] {
        &self.text
    }

    /// The longest suffix of the text that occurs earlier in it.
    pub(crate) fn longest_match(&self) -> Option<Match> {
        self.found
    }

    pub(crate) fn push(&mut self, token: u32) {
        self.text.push(token);
        let length = self.text.len() as u32;
        let whole = self.add(State { length, link: ROOT, end: length, token: NONE });
        let mut state = self.last;
        while state != NONE && self.target(state, token).is_none() {
            self.add_edge(state, token, whole);
            state = self.states[state as usize].link;
        }
        self.states[whole as usize].link = match state {
            NONE => ROOT,
            state => self.suffix_state(state, token),
        };
        self.last = whole;
        self.note();
    }

    /// The state of the suffix that `state`'s longest substring and `token` make, cut off from longer ones.
    fn suffix_state(&mut self, state: u32, token: u32) -> u32 {
        let target = self.target(state, token).expect("the caller found the edge");
        let length = self.states[state as usize].length + 1;
        if self.states[target as usize].length == length {
            return target;
        }
        let cut = self.add(State { length, token: NONE, ..self.states[target as usize] });
        let mut copied = self.states[target as usize].token;
        while copied != NONE {
            let Edge { target, next_token } = self.edges[&(target, copied)];
            self.add_edge(cut, copied, target);
            copied = next_token;
        }
        let mut from = state;
        while from != NONE {
            match self.edges.get_mut(&(from, token)) {
                Some(edge) if edge.target == target => edge.target = cut,
                _ => break,
            }
            from = self.states[from as usize].link;
        }
        self.states[target as usize].link = cut;
        cut
    }

    /// Finds where the longest repeated suffix stood before, and notes that it stands here too.
    fn note(&mut self) {
        let mut state = self.states[self.last as usize].link;
        let State { length, end, .. } = self.states[state as usize];
        self.found = (length > 0).then_some(Match { length: length as usize, end: end as usize });
        for _ in 0..NOTED {
            if state == ROOT {
                break;
            }
            let State { end, link, .. } = &mut self.states[state as usize];
            *end = self.text.len() as u32;
            state = *link;
        }
    }

    fn add(&mut self, state: State) -> u32 {
        self.states.push(state);
        self.states.len() as u32 - 1
    }

    fn target(&self, state: u32, token: u32) -> Option<u32> {
        self.edges.get(&(state, token)).map(|edge| edge.target)
    }

    fn add_edge(&mut self, state: u32, token: u32, target: u32) {
        let first = &mut self.states[state as usize].token;
        self.edges.insert((state, token), Edge { target, next_token: *first });
        *first = token;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn automaton(text: &[u32]) -> SuffixAutomaton {
        let mut automaton = SuffixAutomaton::default();
        text.iter().for_each(|&token| automaton.push(token));
        automaton
    }

    /// Length of the longest suffix that ends anywhere before the end, by definition.
    fn longest_repeat(text: &[u32]) -> usize {
        let is_repeated = |length: usize| {
            let suffix = &text[text.len() - length..];
            (length..text.len()).any(|end| text[end - length..end] == *suffix)
        };
        (1..text.len()).rev().find(|&length| is_repeated(length)).unwrap_or(0)
    }

    proptest! {
        #[test]
        fn after_each_token_the_longest_repeated_suffix_is_known_with_a_place_where_it_stood(
            text in prop_oneof![
                prop::collection::vec(0u32..2, 1..60),
                prop::collection::vec(0u32..5, 1..60),
            ],
        ) {
            let mut automaton = SuffixAutomaton::default();
            for (i, &token) in text.iter().enumerate() {
                automaton.push(token);
                let text = &text[..=i];
                let length = longest_repeat(text);
                let found = automaton.longest_match();
                prop_assert_eq!(found.map_or(0, |found| found.length), length);
                if let Some(Match { end, .. }) = found {
                    prop_assert!(end < text.len());
                    prop_assert_eq!(&text[end - length..end], &text[text.len() - length..]);
                }
            }
        }

        #[test]
        fn it_grows_by_two_states_and_three_edges_a_token_at_most(
            text in prop::collection::vec(0u32..4, 1..300),
        ) {
            let automaton = automaton(&text);
            prop_assert!(automaton.states.len() <= 2 * text.len() + 1);
            prop_assert!(automaton.edges.len() <= 3 * text.len());
        }
    }

    #[test]
    fn of_several_places_the_latest_is_found() {
        let text = [1, 2, 3, 9, 1, 2, 4, 9, 1, 2, 5, 9, 8, 1, 2];
        assert_eq!(automaton(&text).longest_match(), Some(Match { length: 2, end: 10 }));
    }
}
