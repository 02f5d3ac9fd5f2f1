//! A shape that knows its letters, so that an error reads `(3D, D) = (384, 128)`.

use std::fmt;

use crate::Config;

/// The shape a tensor should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    letters: Vec<&'static str>,
    sizes: Vec<usize>,
}

impl Shape {
    /// Pairs every letter with its size in `config`.
    pub(super) fn of(config: &Config, letters: &[&'static str]) -> Shape {
        Shape {
            letters: letters.to_vec(),
            sizes: letters.iter().map(|letter| size_of(config, letter)).collect(),
        }
    }

    /// Sizes of the dimensions, outermost first.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }
}

fn size_of(config: &Config, letter: &str) -> usize {
    match letter {
        "1" => 1,
        "D" => config.hidden_size,
        "3D" => 3 * config.hidden_size,
        "F" => config.ffn_size,
        "H" => config.heads,
        "H*d" => config.heads * config.head_dim,
        "G*d" => config.kv_heads * config.head_dim,
        "d" => config.head_dim,
        "K" => config.conv_taps,
        "V" => config.vocab_size,
        other => unreachable!("no dimension is called {other}"),
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<_> = self.sizes.iter().map(usize::to_string).collect();
        write!(f, "({}) = ({})", self.letters.join(", "), sizes.join(", "))
    }
}
