//! Patterns against what browsers make of them.

use super::*;

#[test]
fn patterns_are_written_in_signs_that_mean_one_thing() {
    let table = [
        ("^a$", "^(?:a)$"),
        ("a", "^(?:(?s:.*)a(?s:.*))$"),
        ("^a|b$", "^(?:a(?s:.*)|(?s:.*)b)$"),
        ("(^a|b)c", "^(?:(?:a|(?s:.*)b)c(?s:.*))$"),
        ("^(?<stop>a)+?$", "^(?:(?:a)+)$"),
        ("", "^(?:(?s:.*)(?s:.*))$"),
        ("^$", "^(?:)$"),
        ("^[a-c_]{2,}$", r"^(?:[[\x{61}-\x{63}\x{5f}]&&[^\x{0}]]{2,})$"),
        (r"^[\w-.]$", r"^(?:[[0-9A-Z_a-z\x{2d}\x{2e}]&&[^\x{0}]])$"),
        (r"^[[a&&b]$", r"^(?:[[\x{5b}\x{61}\x{26}\x{26}\x{62}]&&[^\x{0}]])$"),
        (r"^\u0041\x42\u{43}\ud83d\ude00\cA$", r"^(?:ABC\x{1f600}\x{1})$"),
        (r"^\/\-{$", r"^(?:\x{2f}\x{2d}\x{7b})$"),
        ("^a{,2}$", r"^(?:a\x{7b}\x{2c}2\x{7d})$"),
    ];
    for (pattern, rust) in table {
        assert_eq!(to_rust(pattern).as_deref(), Ok(rust), "{pattern}");
    }
}

#[test]
fn what_grammars_cannot_follow_and_what_is_no_pattern_is_refused() {
    let deep = "(".repeat(5000);
    for pattern in [
        "(?=a)b",
        "(?!a)",
        "(?<=a)",
        "(?i:a)",
        r"(a)\1",
        r"\k<x>",
        r"\bword",
        r"\B",
        "a^b",
        "(^a)*",
        r"\Aa\Z",
        r"\a",
        "(",
        ")",
        "[",
        "[]",
        "a**",
        "a++",
        "*",
        "{2}",
        "a{3,2}",
        "a{1000000}",
        "[z-a]",
        r"\",
        r"\x1",
        r"\ud800",
        r"\p{}",
        r"\pL",
        r"\c1",
        r"\01",
        "(?<>a",
        &deep,
    ] {
        assert!(to_rust(pattern).is_err(), "{pattern}");
    }
}
