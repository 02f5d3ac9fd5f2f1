//! `--spec`: who guesses tokens, and whether the bundle can check them.

use lone_bundle::{Bundle, Role};
use lone_convert::ConvertOptions;
use lone_engine::{Experience, NgramSimple, Proposers, RequestError, SuffixProposer};

use crate::args::{SpecChoice, SpeculationArgs};
use crate::bundle::BundleSource;
use crate::failure::{Failure, UserError};

/// What the flags ask for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speculation {
    Ngram { n: usize, m: usize },
    Suffix { most: usize, cost: Option<f64> },
}

/// What `args` ask for, if they ask for speculation at all.
///
/// # Errors
/// [`Failure::Usage`] for flags that mean nothing without others, and for numbers with which nothing is ever guessed.
pub(crate) fn resolve(args: &SpeculationArgs) -> Result<Option<Speculation>, Failure> {
    let meaningless = |flag, without| {
        let message = format!("{flag} means nothing without {without}");
        Err(Failure::Usage(UserError::new(message)))
    };
    let m = args.spec_m.unwrap_or(NgramSimple::USUAL_M);
    let choice = if args.spec_ngram { Some(SpecChoice::Ngram) } else { args.spec };
    match choice {
        None if args.spec_m.is_some() => meaningless("--spec-m", "--spec"),
        None | Some(SpecChoice::Suffix) if args.spec_n.is_some() => meaningless("--spec-n", "--spec ngram"),
        None | Some(SpecChoice::Ngram) if args.spec_cost.is_some() => {
            meaningless("--spec-cost", "--spec suffix")
        }
        None => Ok(None),
        Some(SpecChoice::Suffix) => {
            Ok(Some(Speculation::Suffix { most: m, cost: args.spec_cost.map(f64::from) }))
        }
        Some(SpecChoice::Ngram) => {
            let n = args.spec_n.unwrap_or(NgramSimple::USUAL_N);
            if m < n {
                let message = format!(
                    "`ngram` never guesses fewer tokens than --spec-n, {n}, so a --spec-m of {m} leaves it none"
                );
                let hint = format!("--spec-n {m} or fewer, or --spec suffix");
                return Err(Failure::Usage(UserError::new(message).with_hint(hint)));
            }
            Ok(Some(Speculation::Ngram { n, m }))
        }
    }
}

/// Sees to it that what runs can check the guesses there will be: a bundle must have a function for that, and a
/// conversion gets one.
///
/// # Errors
/// [`RequestError::NoVerify`], and [`Failure::Usage`] for a conversion that cannot have such a function.
pub(crate) fn prepare(speculation: Option<Speculation>, source: &mut BundleSource) -> Result<(), Failure> {
    let Some(Speculation::Ngram { m, .. } | Speculation::Suffix { most: m, .. }) = speculation else {
        return Ok(());
    };
    match source {
        BundleSource::Converted(_, options) => widen(options, m),
        BundleSource::Named(dir) => {
            let bundle = Bundle::open(dir)?;
            let mut functions = bundle.chunks().flat_map(|graph| &graph.functions);
            match functions.any(|function| function.role == Role::Verify) {
                true => Ok(()),
                false => Err(RequestError::NoVerify.into()),
            }
        }
    }
}

/// Asks the converter for a function that checks `drafts` guesses, where nothing else was asked for.
///
/// # Errors
/// [`Failure::Usage`] if there cannot be one.
pub(crate) fn widen(options: &mut ConvertOptions, drafts: usize) -> Result<(), Failure> {
    let refuse =
        |why: &str| Err(Failure::Usage(UserError::new(format_args!("--spec does not go with {why}"))));
    if options.prefill_only {
        return refuse("--prefill-only: guesses are checked while decoding");
    }
    let most = options.ctx.first().map_or(0, |shortest| shortest - 1);
    if most == 0 {
        return refuse("--ctx 1: a guess needs a second token");
    }
    options.spec_drafts.get_or_insert(drafts.min(most));
    Ok(())
}

impl Speculation {
    /// Whoever guesses; what one learns the others know.
    pub(crate) fn proposers(self) -> Proposers {
        match self {
            Speculation::Ngram { n, m } => Proposers::new(move || Box::new(NgramSimple::new(n, m))),
            Speculation::Suffix { most, cost } => {
                let experience = Experience::new();
                Proposers::new(move || {
                    let proposer = SuffixProposer::new().with_most(most).with_experience(&experience);
                    Box::new(match cost {
                        Some(cost) => proposer.with_cost(cost),
                        None => proposer,
                    })
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(args: SpeculationArgs) -> Result<Option<Speculation>, String> {
        resolve(&args).map_err(|failure| match failure {
            Failure::Usage(error) => error.message,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn the_old_spelling_and_the_usual_numbers_are_llama_cpps() {
        let usual = Ok(Some(Speculation::Ngram { n: 12, m: 16 }));
        assert_eq!(resolved(SpeculationArgs { spec_ngram: true, ..Default::default() }), usual);
        assert_eq!(resolved(SpeculationArgs { spec: Some(SpecChoice::Ngram), ..Default::default() }), usual);
        assert_eq!(resolved(SpeculationArgs::default()), Ok(None));
    }

    #[test]
    fn numbers_without_a_proposer_are_refused() {
        let message = resolved(SpeculationArgs { spec_m: Some(4), ..Default::default() }).unwrap_err();
        assert_eq!(message, "--spec-m means nothing without --spec");
        let suffix =
            SpeculationArgs { spec: Some(SpecChoice::Suffix), spec_n: Some(4), ..Default::default() };
        assert_eq!(resolved(suffix).unwrap_err(), "--spec-n means nothing without --spec ngram");
        let ngram = SpeculationArgs { spec_ngram: true, spec_cost: Some(2.0), ..Default::default() };
        assert_eq!(resolved(ngram).unwrap_err(), "--spec-cost means nothing without --spec suffix");
    }

    #[test]
    fn a_conversion_on_first_use_gets_a_function_that_checks_all_guesses() {
        let mut options = ConvertOptions::default();
        widen(&mut options, 9).unwrap();
        assert_eq!(options.spec_drafts, Some(9));
        widen(&mut options, 16).unwrap();
        assert_eq!(options.spec_drafts, Some(9), "as was asked for");
        let mut small = ConvertOptions { ctx: vec![8, 64], ..ConvertOptions::default() };
        widen(&mut small, 16).unwrap();
        assert_eq!(small.spec_drafts, Some(7));
    }

    #[test]
    fn a_conversion_that_can_have_no_such_function_is_refused_as_usage() {
        let base = ConvertOptions::default;
        let conversions = [
            (ConvertOptions { prefill_only: true, ..base() }, "--spec does not go with --prefill-only"),
            (ConvertOptions { ctx: vec![1], ..base() }, "--spec does not go with --ctx 1"),
        ];
        for (mut options, expected) in conversions {
            match widen(&mut options, 16) {
                Err(Failure::Usage(error)) => assert!(error.message.starts_with(expected), "{error:?}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn numbers_with_which_nothing_is_ever_guessed_are_refused() {
        let ngram = |spec_n, spec_m| SpeculationArgs {
            spec_ngram: true,
            spec_n,
            spec_m,
            ..SpeculationArgs::default()
        };
        let message = resolved(ngram(None, Some(11))).unwrap_err();
        assert!(message.contains("--spec-n, 12,") && message.contains("--spec-m of 11"), "{message}");
        assert_eq!(resolved(ngram(Some(4), Some(4))), Ok(Some(Speculation::Ngram { n: 4, m: 4 })));
        assert!(resolved(ngram(Some(17), None)).is_err());
    }
}
