//! The rotary embedding of each attention kind: `rope_parameters`, or the older `rope_theta`.
//!
//! LFM2 has one flat block; LFM3 one block per attention kind. Whatever would turn the angles into something not
//! modelled is refused by name.

use serde_json::Value;

use super::fields::Fields;
use super::{Arch, ConfigError, LayerKind};
use crate::Warning;

/// Base, kind and scale of one rotary embedding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RopeConfig {
    /// Base of the geometric series of frequencies.
    pub theta: f64,
    /// Which of the d/2 angles turn.
    pub kind: RopeKind,
}

/// How the d/2 angles are filled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RopeKind {
    /// Every angle turns: `theta^(-2i/d)`.
    Default,
    /// The first `int(partial_factor * d / 2)` angles turn, by `theta^(-2i/d) / factor`; the others stay at zero.
    Proportional {
        /// Share of the angles that turn, 0 to 1.
        partial_factor: f64,
        /// Divisor of the frequencies.
        factor: f64,
    },
}

const THETA: std::ops::RangeInclusive<f64> = 1e-6..=1e30;
const LFM2_THETA: f64 = 1e6;

/// The rotary embeddings of (full, sliding) attention; `None` where no layer uses that kind.
pub(super) fn parse(
    arch: Arch,
    root: &Fields<'_>,
    layers: &[LayerKind],
    warnings: &mut Vec<Warning>,
) -> Result<(Option<RopeConfig>, Option<RopeConfig>), ConfigError> {
    if let Some(block) = root.value("rope_scaling") {
        return Err(ConfigError::Unsupported {
            field: root.full_name("rope_scaling"),
            found: block.to_string(),
            supported: "rotary angles are scaled by `rope_parameters` of type \"default\" or \"proportional\" only",
        });
    }
    let uses = |kind| layers.contains(&kind);
    match arch {
        Arch::Lfm2 => {
            let rope = parse_flat(root, warnings)?;
            Ok((uses(LayerKind::FullAttention).then_some(rope), None))
        }
        Arch::Lfm3 => {
            warn_of_flat_theta(root, warnings);
            let full = uses(LayerKind::FullAttention)
                .then(|| parse_keyed(root, "full_attention", LFM3_FULL, warnings))
                .transpose()?;
            let sliding = uses(LayerKind::SlidingAttention)
                .then(|| parse_keyed(root, "sliding_attention", LFM3_SLIDING, warnings))
                .transpose()?;
            Ok((full, sliding))
        }
    }
}

const LFM3_FULL: RopeConfig =
    RopeConfig { theta: 1e6, kind: RopeKind::Proportional { partial_factor: 0.5, factor: 1.0 } };
const LFM3_SLIDING: RopeConfig = RopeConfig { theta: 1e4, kind: RopeKind::Default };

fn parse_flat(root: &Fields<'_>, warnings: &mut Vec<Warning>) -> Result<RopeConfig, ConfigError> {
    let old_theta = root.number(&["rope_theta"], THETA, warnings)?;
    let Some(block) = root.value("rope_parameters") else {
        return Ok(RopeConfig { theta: old_theta.unwrap_or(LFM2_THETA), kind: RopeKind::Default });
    };
    let fields = object(root, "rope_parameters", "rope_parameters", block)?;
    let new_theta = fields.number(&["rope_theta"], THETA, warnings)?;
    if let (Some(new), Some(old)) = (new_theta, old_theta)
        && new != old
    {
        warnings.push(Warning::SpellingsDiffer {
            new: fields.full_name("rope_theta"),
            new_value: new.to_string(),
            old: "rope_theta".to_owned(),
            old_value: old.to_string(),
        });
    }
    let theta = new_theta.or(old_theta).unwrap_or(LFM2_THETA);
    Ok(RopeConfig { theta, kind: parse_kind(&fields, warnings)? })
}

fn parse_keyed(
    root: &Fields<'_>,
    attention: &'static str,
    default: RopeConfig,
    warnings: &mut Vec<Warning>,
) -> Result<RopeConfig, ConfigError> {
    let Some(blocks) = root.value("rope_parameters") else { return Ok(default) };
    let by_attention = object(root, "rope_parameters", "rope_parameters", blocks)?;
    let block = by_attention.value(attention).ok_or_else(|| by_attention.missing(&[attention]))?;
    let path = by_attention.full_name(attention);
    let fields = object(&by_attention, attention, &path, block)?;
    let theta =
        fields.number(&["rope_theta"], THETA, warnings)?.ok_or_else(|| fields.missing(&["rope_theta"]))?;
    Ok(RopeConfig { theta, kind: parse_kind(&fields, warnings)? })
}

fn parse_kind(fields: &Fields<'_>, warnings: &mut Vec<Warning>) -> Result<RopeKind, ConfigError> {
    let (name, kind) = match fields.newest(&["rope_type", "type"], warnings) {
        Some((name, value)) => (name, value.as_str().ok_or_else(|| fields.invalid(name, "a string", value))?),
        None => ("rope_type", "default"),
    };
    let partial_factor = fields.number(&["partial_rotary_factor"], 0.0..=1.0, warnings)?;
    let factor = fields.number(&["factor"], 1e-6..=1e6, warnings)?;
    match kind {
        "default" => {
            for (field, value) in [("partial_rotary_factor", partial_factor), ("factor", factor)] {
                if let Some(value) = value.filter(|&value| value != 1.0) {
                    warnings.push(Warning::FieldIgnored {
                        field: fields.full_name(field),
                        value: value.to_string(),
                        reason: "a rotary embedding of type \"default\" turns every angle, unscaled",
                    });
                }
            }
            Ok(RopeKind::Default)
        }
        "proportional" => Ok(RopeKind::Proportional {
            partial_factor: partial_factor.unwrap_or(1.0),
            factor: factor.unwrap_or(1.0),
        }),
        other => Err(ConfigError::Unsupported {
            field: fields.full_name(name),
            found: format!("\"{other}\""),
            supported: "rotary embeddings are of type \"default\" or \"proportional\"",
        }),
    }
}

fn warn_of_flat_theta(root: &Fields<'_>, warnings: &mut Vec<Warning>) {
    if let Some(theta) = root.value("rope_theta") {
        warnings.push(Warning::FieldIgnored {
            field: "rope_theta".to_owned(),
            value: theta.to_string(),
            reason: "LFM3 has one base for each attention kind, in `rope_parameters`",
        });
    }
}

/// `value` of the field `name` as an object whose own fields are called `path.…`.
fn object<'a>(
    parent: &Fields<'_>,
    name: &str,
    path: &'a str,
    value: &'a Value,
) -> Result<Fields<'a>, ConfigError> {
    let object = value.as_object().ok_or_else(|| parent.invalid(name, "an object", value))?;
    Ok(Fields { file: parent.file, path, object })
}
