//! Large palettes brought to twelve bits a weight, where weights are copied to memory of their own anyway and lookups are slow.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use lone_mil::{BlobError, BlobFile};

use crate::isa::TwelveBitsChunk;
use crate::kernels::IndexBits;
use crate::pages::{self, Pages};
use crate::plan::Plan;
use crate::steps::{PalettizedWeight, ROWS_PER_BLOCK, TwelveBitsWeight, Weight};
use crate::{Isa, Pool};

/// Brings what can be to that form, if it is faster with the instructions of `isa`: the same weights only once, however many
/// functions read them. Gives the records of indices that nobody reads any more.
///
/// # Errors
/// [`BlobError::Read`] if there is no memory left.
pub(crate) fn bring(
    plans: &mut [Plan],
    blobs: &BlobFile,
    isa: Isa,
    pool: &Pool,
) -> Result<Vec<u64>, BlobError> {
    if !isa.looks_up_slowly() {
        return Ok(Vec::new());
    }
    let mut brought: HashMap<_, Option<Arc<TwelveBitsWeight>>> = HashMap::new();
    let mut unread = Vec::new();
    let mut read = Vec::new();
    for weight in plans.iter_mut().flat_map(Plan::weights) {
        let Weight::Palettized(palettized) = weight else { continue };
        let record = palettized.indices.0;
        let scales = palettized.scales.as_ref().map(|scales| scales.get(blobs).as_ptr());
        let same = (record, palettized.palettes.get(blobs).as_ptr(), palettized.group_rows, scales);
        let new = match brought.get(&same) {
            Some(known) => known.clone(),
            None => {
                let new = of(palettized, blobs, pool)
                    .map_err(|source| BlobError::Read { path: blobs.path().to_owned(), source })?
                    .map(Arc::new);
                brought.insert(same, new.clone());
                new
            }
        };
        match new {
            Some(new) => {
                unread.push(record);
                *weight = Weight::TwelveBits(new);
            }
            None => read.push(record),
        }
    }
    unread.retain(|record| !read.contains(record));
    Ok(unread)
}

/// The same in twelve bits; none if it is faster as it is, or cannot be.
fn of(weight: &PalettizedWeight, blobs: &BlobFile, pool: &Pool) -> io::Result<Option<TwelveBitsWeight>> {
    let shape = &weight.indices.1.shape;
    let (rows, matrix) = (shape[0], weight.get(blobs));
    let cols = shape.elements() / rows;
    let Some(high_bytes) = matrix.high_bytes(cols).filter(|_| weight.bits != IndexBits::Four) else {
        return Ok(None);
    };
    let mut map = pages::map(rows * cols * 12 / 8, Pages::Huge)?;
    let chunks: &mut [TwelveBitsChunk] = map.as_chunks_mut().0;
    let per_row = chunks.len() / rows;
    pool.for_each_chunk(chunks, per_row * ROWS_PER_BLOCK, |block, chunks| {
        matrix.write_twelve_bits(&high_bytes, cols, block * ROWS_PER_BLOCK, chunks);
    });
    Ok(Some(TwelveBitsWeight {
        bits: weight.bits,
        chunks: map.make_read_only()?,
        high_bytes,
        group_rows: weight.group_rows,
        scales: weight.scales.clone(),
    }))
}
