//! How much of a schema, or of all schemas of one request, is read. Real ones stay far below; what is above would keep
//! a thread busy for long, or need more stack than there is.

use super::{GrammarError, refuse};

/// Schemas within the schema, each counted wherever a copy of it is needed.
const MOST_SCHEMAS: usize = 10_000;
/// Values of `enum` and `const` with all that is in them, and names in `required`.
const MOST_VALUES: usize = 10_000;
/// Bytes of those values and of the names of properties.
const MOST_VALUE_BYTES: usize = 250_000;
/// Patterns of strings and of names.
const MOST_PATTERNS: usize = 500;
/// Patterns where `allOf` or the like may put several upon one string.
const MOST_JOINED_PATTERNS: usize = 20;
/// Bytes of all patterns.
const MOST_PATTERN_BYTES: usize = 20_000;
/// Schemas within schemas, by nesting and by reference.
pub(super) const MOST_DEPTH: usize = 1000;

/// What has been read so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    schemas: usize,
    values: usize,
    value_bytes: usize,
    patterns: usize,
    pattern_bytes: usize,
}

impl Tally {
    pub(super) fn schemas(&mut self, more: usize) -> Result<(), GrammarError> {
        add(&mut self.schemas, more, MOST_SCHEMAS, "schemas within it")
    }

    pub(super) fn values(&mut self, more: usize) -> Result<(), GrammarError> {
        add(&mut self.values, more, MOST_VALUES, "values in `enum`, `const` and `required`")
    }

    pub(super) fn value_bytes(&mut self, more: usize) -> Result<(), GrammarError> {
        add(&mut self.value_bytes, more, MOST_VALUE_BYTES, "bytes of values and names")
    }

    pub(super) fn pattern(&mut self, bytes: usize) -> Result<(), GrammarError> {
        add(&mut self.patterns, 1, MOST_PATTERNS, "patterns")?;
        add(&mut self.pattern_bytes, bytes, MOST_PATTERN_BYTES, "bytes of patterns")
    }

    /// Says that any of the patterns so far may meet on one string.
    pub(super) fn joined_patterns(&self) -> Result<(), GrammarError> {
        add(&mut 0, self.patterns, MOST_JOINED_PATTERNS, "patterns, with `allOf` or the like to join them")
    }
}

fn add(count: &mut usize, more: usize, most: usize, what: &str) -> Result<(), GrammarError> {
    *count = count.saturating_add(more);
    if *count > most { Err(refuse(format_args!("it has more than {most} {what}"))) } else { Ok(()) }
}
