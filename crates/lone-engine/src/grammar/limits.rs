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
/// Bytes of definitions, counted for each argument of a tool that needs a copy.
const MOST_COPIED_BYTES: usize = 5_000_000;
/// The size of a schema that may be copied where it stands, as [`Tally::size`] has it.
pub(super) const MOST_COPIED: usize = 32;
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
    copied_bytes: usize,
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

    pub(super) fn copied_bytes(&mut self, more: usize) -> Result<(), GrammarError> {
        add(&mut self.copied_bytes, more, MOST_COPIED_BYTES, "bytes of definitions, a copy for each argument")
    }

    /// About what it takes to hold all that has been read, in schemas.
    pub(super) fn size(&self) -> usize {
        const BYTES_OF_A_SCHEMA: usize = 64;
        self.schemas + self.values + (self.value_bytes + self.pattern_bytes) / BYTES_OF_A_SCHEMA
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
