//! Where Core ML means to run a program's operations.

/// Where operations run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Device {
    /// The Neural Engine.
    NeuralEngine,
    /// The GPU.
    Gpu,
    /// The CPU.
    Cpu,
    /// One that Core ML could not determine, or that lone does not know.
    Unknown,
}

impl Device {
    /// Its name in reports and in bundle.json.
    pub fn name(self) -> &'static str {
        match self {
            Device::NeuralEngine => "neural_engine",
            Device::Gpu => "gpu",
            Device::Cpu => "cpu",
            Device::Unknown => "unknown",
        }
    }
}

/// An operation and the device that Core ML prefers for it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedOp {
    /// Name of its first result in the program.
    pub name: String,
    /// What it does, such as `conv`.
    pub operator: String,
    /// Where it is to run.
    pub device: Device,
    /// Its share of the function's cost, 0 to 1, where Core ML estimates one.
    pub cost: Option<f64>,
}

/// The plan of one function.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionPlacement {
    /// The function's name.
    pub function: String,
    /// Its operations in order; constants, which run nowhere, are left out.
    pub ops: Vec<PlacedOp>,
}

/// Whether `operator` is a constant, which runs nowhere. Of anything else that Core ML names no device for, it does not know where it runs.
#[cfg_attr(not(any(target_os = "macos", test)), expect(dead_code, reason = "only Core ML has plans"))]
pub(crate) fn is_constant(operator: &str) -> bool {
    operator == "const" || operator.starts_with("constexpr_")
}

/// `ios18.conv` as a program calls it: `conv`.
#[cfg_attr(not(any(target_os = "macos", test)), expect(dead_code, reason = "only Core ML has plans"))]
pub(crate) fn plain_operator(operator: &str) -> &str {
    match operator.split_once('.') {
        Some((opset, plain)) if opset.starts_with("ios") => plain,
        _ => operator,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_loses_its_opset_and_nothing_else() {
        assert_eq!(plain_operator("ios18.conv"), "conv");
        assert_eq!(plain_operator("matmul"), "matmul");
        assert_eq!(plain_operator("tensor_buffer.copy"), "tensor_buffer.copy");
    }

    #[test]
    fn constants_run_nowhere_and_everything_else_runs_somewhere() {
        for (operator, constant) in
            [("const", true), ("constexpr_lut_to_dense", true), ("constant_pad", false), ("conv", false)]
        {
            assert_eq!(is_constant(plain_operator(&format!("ios18.{operator}"))), constant, "{operator}");
        }
    }
}
