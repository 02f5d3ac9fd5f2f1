//! What computing costs in energy, where the system tells.
//!
//! ```text
//! EnergyMeter ── Rapl        Linux: the counters of the processor's packages, below /sys/class/powercap
//!             └─ IoReport    macOS: the rails of Neural Engine, CPU, GPU and memory, without root
//! EnergyWatch ── a meter, and what its rails draw when nothing is computed
//! ```
//! Counters are the whole system's: what others compute meanwhile is counted too. Where there is no meter there is no number,
//! rather than zero.

#[cfg(target_os = "macos")]
#[expect(unsafe_code, reason = "IOReport is C: every call into it is unsafe")]
mod io_report;
mod meter;
mod rail;
mod rapl;
mod report;
mod watch;

#[cfg(target_os = "macos")]
pub use io_report::IoReport;
pub use meter::{Counters, EnergyMeter, MeterError, RailCounter, Traffic};
pub use rail::Rail;
pub use rapl::Rapl;
pub use report::EnergyReport;
pub use watch::{Energy, EnergyWatch, Mark, RailEnergy};
