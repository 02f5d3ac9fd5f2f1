//! Palettes in 8 bits, where `--fast-int16` asks for them.

use std::collections::HashMap;
use std::sync::Arc;

use lone_mil::BlobFile;

use crate::Isa;
use crate::kernels::RoundedPalettes;
use crate::plan::Plan;
use crate::steps::Weight;

/// Rounds palettes, those of the same weights only once, if products of rounded numbers are faster with the instructions of
/// `isa`. Palettes that are not finite stay as they are.
pub(crate) fn round(plans: &mut [Plan], blobs: &BlobFile, isa: Isa) {
    if !isa.has_fast_int16() {
        return;
    }
    let mut rounded: HashMap<_, Option<Arc<RoundedPalettes>>> = HashMap::new();
    for weight in plans.iter_mut().flat_map(Plan::weights) {
        let Weight::Palettized(palettized) = weight else { continue };
        let palettes = palettized.palettes.get(blobs);
        let same = (palettes.as_ptr_range(), palettized.bits.bits());
        let new = rounded
            .entry(same)
            .or_insert_with(|| RoundedPalettes::of(palettes, palettized.bits).map(Arc::new));
        if let Some(new) = new {
            *weight = Weight::Int16(Arc::clone(palettized), Arc::clone(new));
        }
    }
}
