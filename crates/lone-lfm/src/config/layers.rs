//! Which operator each layer has: `layer_types`, the older `full_attn_idxs`, or LFM3's regular pattern.

use serde_json::Value;

use super::fields::Fields;
use super::{Arch, ConfigError};
use crate::Warning;

/// The operator of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LayerKind {
    /// Gated short convolution.
    Conv,
    /// Attention over every earlier position.
    FullAttention,
    /// Attention over the last `sliding_window` positions, the query's own included. LFM3 only.
    SlidingAttention,
}

impl LayerKind {
    /// The name config.json gives it.
    pub fn name(self) -> &'static str {
        match self {
            LayerKind::Conv => "conv",
            LayerKind::FullAttention => "full_attention",
            LayerKind::SlidingAttention => "sliding_attention",
        }
    }

    /// True for both kinds of attention.
    pub fn is_attention(self) -> bool {
        self != LayerKind::Conv
    }
}

pub(super) fn parse(
    arch: Arch,
    root: &Fields<'_>,
    layer_count: usize,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<LayerKind>, ConfigError> {
    let new =
        root.value("layer_types").map(|value| from_names(arch, root, layer_count, value)).transpose()?;
    let old = match arch {
        Arch::Lfm2 => {
            root.value("full_attn_idxs").map(|value| from_indices(root, layer_count, value)).transpose()?
        }
        Arch::Lfm3 => None,
    };
    if let (Some(new), Some(old)) = (&new, &old)
        && new != old
    {
        warnings.push(Warning::SpellingsDiffer {
            new: "layer_types".to_owned(),
            new_value: root.value("layer_types").map(Value::to_string).unwrap_or_default(),
            old: "full_attn_idxs".to_owned(),
            old_value: root.value("full_attn_idxs").map(Value::to_string).unwrap_or_default(),
        });
    }
    match (new.or(old), arch) {
        (Some(layers), _) => Ok(layers),
        (None, Arch::Lfm3) => Ok((0..layer_count).map(lfm3_kind).collect()),
        (None, Arch::Lfm2) => Err(root.missing(&["layer_types", "full_attn_idxs"])),
    }
}

/// LFM3's pattern: two convolutions, full attention, convolution, then sliding and full attention in turn.
fn lfm3_kind(layer: usize) -> LayerKind {
    match layer % 4 {
        2 => LayerKind::FullAttention,
        0 if layer > 0 => LayerKind::SlidingAttention,
        _ => LayerKind::Conv,
    }
}

fn from_names(
    arch: Arch,
    root: &Fields<'_>,
    layer_count: usize,
    value: &Value,
) -> Result<Vec<LayerKind>, ConfigError> {
    let names = value.as_array().ok_or_else(|| root.invalid("layer_types", "a list of strings", value))?;
    if names.len() != layer_count {
        let expected = format!("one kind for each of the {layer_count} layers of `num_hidden_layers`");
        return Err(root.invalid("layer_types", expected, &format!("{} kinds", names.len())));
    }
    let kind_of = |(layer, name): (usize, &Value)| match (name.as_str(), arch) {
        (Some("conv"), _) => Ok(LayerKind::Conv),
        (Some("full_attention"), _) => Ok(LayerKind::FullAttention),
        (Some("sliding_attention"), Arch::Lfm3) => Ok(LayerKind::SlidingAttention),
        (Some(_), _) => Err(ConfigError::Unsupported {
            field: format!("layer_types[{layer}]"),
            found: name.to_string(),
            supported: match arch {
                Arch::Lfm2 => "layers of LFM2 are \"conv\" or \"full_attention\"",
                Arch::Lfm3 => "layers of LFM3 are \"conv\", \"full_attention\" or \"sliding_attention\"",
            },
        }),
        (None, _) => Err(root.invalid(&format!("layer_types[{layer}]"), "a string", name)),
    };
    names.iter().enumerate().map(kind_of).collect()
}

fn from_indices(root: &Fields<'_>, layer_count: usize, value: &Value) -> Result<Vec<LayerKind>, ConfigError> {
    let expected = || format!("a list of layer numbers below {layer_count}");
    let indices = value.as_array().ok_or_else(|| root.invalid("full_attn_idxs", expected(), value))?;
    let mut layers = vec![LayerKind::Conv; layer_count];
    for index in indices {
        let layer = index.as_u64().and_then(|index| layers.get_mut(usize::try_from(index).ok()?));
        *layer.ok_or_else(|| root.invalid("full_attn_idxs", expected(), value))? = LayerKind::FullAttention;
    }
    Ok(layers)
}
