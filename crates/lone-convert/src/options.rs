//! What a conversion can be asked for, and which of it makes no sense.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use lone_lfm::Config;
use serde_json::{Value, json};

use crate::extents::{MAX_CHANNELS, MAX_EXTENT};
use crate::weights::Storage;
use crate::{Calibration, ConvertError, WeightPrecision};

/// The longest context, in tokens, that graphs are made for.
const MAX_CTX: usize = 1 << 20;

/// How to convert. Fields are called as the flags of `lone convert` are, where there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertOptions {
    /// Context lengths in tokens, ascending: rows of a full-attention cache. Sessions begin at the first and move up.
    pub ctx: Vec<usize>,
    /// P, tokens of a prefill pass, ascending; one function for each.
    pub prefill: Vec<usize>,
    /// N: adds functions for passes of N+1 tokens, one and its drafts.
    pub spec_drafts: Option<usize>,
    /// Layers a chunk; fewer where their weights would be too much for one package.
    pub layers_per_model: usize,
    /// Slices of the head; 0 for as many as make them about 128 MB each.
    pub head_chunks: usize,
    /// Leave the prefill functions out.
    pub decode_only: bool,
    /// Leave the decode functions of the chunks out.
    pub prefill_only: bool,
    /// Give sliding layers caches of their window's size instead of `ctx` rows.
    pub ring: bool,
    /// What the matrices of linear layers and heads are stored as.
    pub precision: WeightPrecision,
    /// Choose the precision of each matrix instead: the smallest bundle whose logits have this mean cosine with the
    /// checkpoint's.
    pub target_cosine: Option<f64>,
    /// Rows of a matrix that share a table, or 0 for all; `None` for what suits the precision.
    pub group: Option<usize>,
    /// Text to fit palettes to; `None` to fit them to the weights alone, or to choose with that which comes with lone.
    pub calibrate: Option<Calibration>,
    /// Write graphs that keep their precision on the Neural Engine.
    pub precision_rules: bool,
    /// What to call the model; its checkpoint's directory says it otherwise.
    pub name: Option<String>,
    /// Replace a bundle that is already there.
    pub force: bool,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        ConvertOptions {
            ctx: vec![2048],
            prefill: vec![64],
            spec_drafts: None,
            layers_per_model: 4,
            head_chunks: 0,
            decode_only: false,
            prefill_only: false,
            ring: true,
            precision: WeightPrecision::Fp16,
            target_cosine: None,
            group: None,
            calibrate: None,
            precision_rules: true,
            name: None,
            force: false,
        }
    }
}

impl ConvertOptions {
    /// Refuses what contradicts itself, or cannot be built for a model of this `config`.
    pub(crate) fn check(&self, config: &Config) -> Result<(), ConvertError> {
        self.check_flags()?;
        if self.head_chunks > 0 {
            let fewest = config.vocab_size.div_ceil(MAX_CHANNELS);
            let why = format!(" (a slice of the head has 1 to {MAX_CHANNELS} tokens)");
            within("--head-chunks", self.head_chunks, fewest..=config.vocab_size, &why)?;
        }
        self.check_passes(most_tokens(config).min(self.shortest_ctx()))
    }

    /// Refuses what no model can be converted with.
    ///
    /// # Errors
    /// [`ConvertError::Option`] or [`ConvertError::Conflict`], naming the flags.
    pub fn check_flags(&self) -> Result<(), ConvertError> {
        self.check_conflicts()?;
        check_list("--ctx", &self.ctx, 1..=MAX_CTX, "")?;
        within("--layers-per-model", self.layers_per_model, 1..=usize::MAX, "")?;
        self.check_passes(self.shortest_ctx())
    }

    fn shortest_ctx(&self) -> usize {
        self.ctx.first().copied().unwrap_or_default()
    }

    /// The most tokens a session can hold.
    pub(crate) fn longest_ctx(&self) -> usize {
        self.ctx.last().copied().unwrap_or_default()
    }

    fn check_passes(&self, most: usize) -> Result<(), ConvertError> {
        let why = format!(" (a pass fits the context of {} and the Neural Engine)", self.shortest_ctx());
        if !self.decode_only {
            check_list("--prefill", &self.prefill, 1..=most, &why)?;
        }
        match self.spec_drafts {
            Some(drafts) => within("--spec-drafts", drafts, 1..=most.saturating_sub(1), &why),
            None => Ok(()),
        }
    }

    fn check_conflicts(&self) -> Result<(), ConvertError> {
        let fp16 = self.precision == WeightPrecision::Fp16 && self.target_cosine.is_none();
        if self.group.is_some() && fp16 {
            let why = "only palettes have groups";
            return Err(ConvertError::Conflict { first: "--group", second: "--precision fp16", why });
        }
        if self.calibrate.is_some() && fp16 {
            let why = "only palettes can be fitted to text";
            let (first, second) = ("--calibrate", "--precision fp16");
            return Err(ConvertError::Conflict { first, second, why });
        }
        if !self.prefill_only {
            return Ok(());
        }
        if self.decode_only {
            let why = "they leave no function";
            return Err(ConvertError::Conflict { first: "--decode-only", second: "--prefill-only", why });
        }
        if self.spec_drafts.is_some() {
            let why = "drafts are verified while decoding";
            return Err(ConvertError::Conflict { first: "--prefill-only", second: "--spec-drafts", why });
        }
        Ok(())
    }

    /// The text that palettes are fitted to, or chosen by.
    pub(crate) fn calibration(&self) -> Option<&Calibration> {
        self.calibrate.as_ref().or(self.target_cosine.map(|_| &Calibration::Builtin))
    }

    /// How matrices are stored, where that is not to be found out.
    pub(crate) fn storage(&self) -> Storage {
        Storage::uniform(self.precision, self.group)
    }

    /// The flags that shape a bundle, by name, for its provenance.
    pub(crate) fn flags(&self) -> BTreeMap<String, Value> {
        let flags = [
            ("ctx", list(&self.ctx)),
            ("prefill", list(&self.prefill)),
            ("spec-drafts", json!(self.spec_drafts)),
            ("layers-per-model", json!(self.layers_per_model)),
            ("head-chunks", json!(self.head_chunks)),
            ("decode-only", json!(self.decode_only)),
            ("prefill-only", json!(self.prefill_only)),
            ("ring", json!(self.ring)),
            ("precision", json!(self.target_cosine.map_or(self.precision.name(), |_| "auto"))),
            ("target-cos", json!(self.target_cosine)),
            ("group", json!(self.group)),
            ("calibrate", json!(self.calibrate.as_ref().map(Calibration::name))),
            ("precision-rules", json!(self.precision_rules)),
        ];
        flags.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// The most tokens of a pass whose tensors all stay within the Neural Engine's extents: the rows of grouped queries
/// (H/G·S) and of a convolution window (K-1+S).
fn most_tokens(config: &Config) -> usize {
    let group = config.heads / config.kv_heads;
    (MAX_EXTENT / group).min(MAX_EXTENT - (config.conv_taps - 1))
}

/// As it is typed: a number where there is only one.
fn list(numbers: &[usize]) -> Value {
    match numbers {
        [only] => json!(only),
        several => json!(several),
    }
}

/// Refuses numbers out of `range`, and lists that are empty or not ascending.
fn check_list(
    option: &'static str,
    numbers: &[usize],
    range: RangeInclusive<usize>,
    why: &str,
) -> Result<(), ConvertError> {
    within(option, numbers.first().copied().unwrap_or_default(), range.clone(), why)?;
    for pair in numbers.windows(2) {
        within(option, pair[1], pair[0] + 1..=*range.end(), ": the numbers ascend")?;
    }
    Ok(())
}

fn within(
    option: &'static str,
    found: usize,
    range: RangeInclusive<usize>,
    why: &str,
) -> Result<(), ConvertError> {
    if range.contains(&found) {
        return Ok(());
    }
    let expected = match range.into_inner() {
        (least, usize::MAX) => format!("at least {least}{why}"),
        (least, most) => format!("{least} to {most}{why}"),
    };
    Err(ConvertError::Option { option, expected, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let text = r#"{"model_type": "lfm2", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 140000, "full_attn_idxs": [1]}"#;
        Config::parse(text, None).unwrap().0
    }

    fn refusal(options: ConvertOptions) -> String {
        options.check(&config()).unwrap_err().to_string()
    }

    #[test]
    fn the_defaults_fit() {
        ConvertOptions::default().check(&config()).unwrap();
    }

    #[test]
    fn a_number_out_of_its_range_is_refused_with_the_range() {
        let base = ConvertOptions::default;
        assert_eq!(refusal(ConvertOptions { ctx: vec![0], ..base() }), "--ctx must be 1 to 1048576, found 0");
        assert!(
            refusal(ConvertOptions { prefill: vec![0], ..base() }).contains("--prefill must be 1 to 2048")
        );
        assert!(
            refusal(ConvertOptions { prefill: vec![16, 33], ctx: vec![32, 64], ..base() })
                .contains("17 to 32: the")
        );
        assert!(
            refusal(ConvertOptions { prefill: vec![9000], ctx: vec![10_000], ..base() })
                .contains("1 to 8192 ")
        );
        assert!(refusal(ConvertOptions { spec_drafts: Some(0), ..base() }).contains("--spec-drafts must be"));
        assert!(
            refusal(ConvertOptions { spec_drafts: Some(64), ctx: vec![64], ..base() }).contains("1 to 63 ")
        );
        let per_model = refusal(ConvertOptions { layers_per_model: 0, ..base() });
        assert_eq!(per_model, "--layers-per-model must be at least 1, found 0");
        assert!(refusal(ConvertOptions { head_chunks: 2, ..base() }).contains("3 to 140000 (a slice"));
    }

    #[test]
    fn contexts_and_passes_ascend() {
        let base = ConvertOptions::default;
        ConvertOptions { ctx: vec![64, 512], prefill: vec![16, 64], ..base() }.check(&config()).unwrap();
        let descending = refusal(ConvertOptions { ctx: vec![512, 64], ..base() });
        assert_eq!(descending, "--ctx must be 513 to 1048576: the numbers ascend, found 64");
        let twice = refusal(ConvertOptions { prefill: vec![8, 8], ..base() });
        assert_eq!(twice, "--prefill must be 9 to 2048: the numbers ascend, found 8");
        assert!(refusal(ConvertOptions { ctx: vec![], ..base() }).contains("found 0"));
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        let neither = ConvertOptions { decode_only: true, prefill_only: true, ..Default::default() };
        assert_eq!(
            refusal(neither),
            "--decode-only and --prefill-only do not go together: they leave no function"
        );
        let drafts = ConvertOptions { prefill_only: true, spec_drafts: Some(4), ..Default::default() };
        assert!(refusal(drafts).contains("--prefill-only and --spec-drafts"));
        let group = ConvertOptions { group: Some(16), ..Default::default() };
        assert!(refusal(group).contains("--group and --precision fp16"));
        let calibrate = ConvertOptions { calibrate: Some(Calibration::Builtin), ..Default::default() };
        assert!(refusal(calibrate).contains("--calibrate and --precision fp16"));
    }

    #[test]
    fn what_is_not_built_is_not_checked() {
        let decode_only = ConvertOptions { decode_only: true, prefill: vec![], ..Default::default() };
        decode_only.check(&config()).unwrap();
    }
}
