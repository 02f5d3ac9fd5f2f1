//! Colours, or their absence.

use std::fmt;

/// Whether a stream takes colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    pub(super) enabled: bool,
}

/// How text can stand out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Style {
    Bold,
    Faint,
    Red,
    Yellow,
    Cyan,
}

impl Paint {
    /// `text` in `style` where colours are enabled, else as it is.
    pub(super) fn paint(self, style: Style, text: impl fmt::Display) -> String {
        if !self.enabled {
            return text.to_string();
        }
        let code = match style {
            Style::Bold => "1",
            Style::Faint => "2",
            Style::Red => "1;31",
            Style::Yellow => "1;33",
            Style::Cyan => "1;36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_left_alone_where_colours_are_off() {
        assert_eq!(Paint { enabled: false }.paint(Style::Red, "x"), "x");
        assert_eq!(Paint { enabled: true }.paint(Style::Red, "x"), "\x1b[1;31mx\x1b[0m");
    }
}
