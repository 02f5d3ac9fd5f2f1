//! A linear layer, as the Neural Engine likes it: a 1x1 convolution over channels.

use std::ops::Range;

use lone_lfm::Tensor;
use lone_mil::{BuildError, FunctionBuilder, ValueId};

use super::{Built, CHANNEL_AXIS, dim};
use crate::precision::{Place, SCALE};
use crate::weights::{PackageWeights, Weight};

/// y = W x + b, x (1,C,1,S), y (1,O,1,S).
#[derive(Debug)]
pub(crate) struct Linear {
    /// Kernels (O,C',1,1) over consecutive channels of x.
    parts: Vec<Weight>,
    /// Whether the kernels hold 16 W.
    scaled: bool,
    bias: Option<Weight>,
}

impl Linear {
    pub(crate) fn load<'c>(
        weights: &mut PackageWeights<'c>,
        matrix: Tensor<'c>,
        bias: Option<Tensor<'c>>,
        place: Place,
    ) -> Self {
        let linear = Self::load_rows(weights, matrix, 0..matrix.rows(), place);
        Linear { bias: bias.map(|bias| weights.vector(bias, CHANNEL_AXIS)), ..linear }
    }

    /// Only some of the outputs, without bias.
    pub(crate) fn load_rows<'c>(
        weights: &mut PackageWeights<'c>,
        matrix: Tensor<'c>,
        rows: Range<usize>,
        place: Place,
    ) -> Self {
        let (parts, scaled) = weights.matrix(matrix, rows, place);
        Linear { parts, scaled, bias: None }
    }

    pub(crate) fn apply(&self, b: &mut FunctionBuilder, x: ValueId) -> Built {
        let mut sum = None;
        for (x, kernel) in self.split(b, x)?.into_iter().zip(&self.parts) {
            let kernel = kernel.value(b)?;
            let product = multiply(b, x, kernel)?;
            let product = self.unscale(b, product)?;
            sum = Some(match sum {
                None => product,
                Some(sum) => b.add(sum, product)?,
            });
        }
        let sum = sum.expect("a matrix has at least one part");
        match &self.bias {
            None => Ok(sum),
            Some(bias) => {
                let bias = bias.value(b)?;
                b.add(sum, bias)
            }
        }
    }

    fn split(&self, b: &mut FunctionBuilder, x: ValueId) -> Result<Vec<ValueId>, BuildError> {
        if self.parts.len() == 1 {
            return Ok(vec![x]);
        }
        let widths: Vec<i32> = self.parts.iter().map(|kernel| dim(kernel.shape()[1])).collect();
        b.split_sizes(x, &widths, dim(CHANNEL_AXIS))
    }

    fn unscale(&self, b: &mut FunctionBuilder, y: ValueId) -> Built {
        if !self.scaled {
            return Ok(y);
        }
        let inverse = b.scalar_f16(SCALE.recip())?;
        b.mul(y, inverse)
    }
}

/// The product itself. Through Core ML, `conv` and `linear` measured alike; directly, `conv` was three times as fast.
fn multiply(b: &mut FunctionBuilder, x: ValueId, kernel: ValueId) -> Built {
    b.conv1x1(x, kernel)
}
