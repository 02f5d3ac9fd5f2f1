//! What Core ML said when it would not do as it was asked.

use std::fmt;

/// A refusal, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(pub String);

impl Fault {
    /// What `reasons` say, the outermost first. What is beneath is often all that tells what is wrong.
    #[cfg_attr(not(any(target_os = "macos", test)), expect(dead_code, reason = "only Core ML has reasons"))]
    pub(crate) fn of(reasons: &[Reason]) -> Self {
        let reasons: Vec<String> = reasons
            .iter()
            .map(|Reason { what, domain, code }| format!("{} ({domain} {code})", what.trim_end_matches('.')))
            .collect();
        Fault(reasons.join(", because: "))
    }

    /// This one, with what had gone wrong before `event`, unless that was the same.
    pub(crate) fn after(self, event: &str, first: Option<&Fault>) -> Self {
        match first {
            Some(first) if *first != self => Fault(format!("{self}; before {event}: {first}")),
            _ => self,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

/// One of Core ML's errors.
#[derive(Debug)]
pub(crate) struct Reason {
    pub(crate) what: String,
    pub(crate) domain: String,
    pub(crate) code: isize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_down_to_the_last_with_their_codes() {
        let reason =
            |what: &str, domain: &str, code| Reason { what: what.into(), domain: domain.into(), code };
        let reasons = [reason("Unable to load.", "com.apple.CoreML", 0), reason("No memory", "ANEF", -12)];
        let expected = "Unable to load (com.apple.CoreML 0), because: No memory (ANEF -12)";
        assert_eq!(Fault::of(&reasons).0, expected);
    }

    #[test]
    fn what_went_wrong_before_is_told_unless_it_was_the_same() {
        let fault = |what: &str| Fault(what.into());
        assert_eq!(fault("b").after("loading anew", Some(&fault("a"))).0, "b; before loading anew: a");
        assert_eq!(fault("a").after("loading anew", Some(&fault("a"))).0, "a");
        assert_eq!(fault("a").after("loading anew", None).0, "a");
    }
}
