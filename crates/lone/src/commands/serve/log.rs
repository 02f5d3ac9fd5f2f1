//! The server's log, to stderr.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::filter::LevelFilter;

use crate::args::{LogFormat, LogLevel};

/// From here on, what the server reports is logged.
pub(super) fn start(level: LogLevel, format: LogFormat) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(stderr).with_target(false);
    // There is one log a process, and this is where it starts.
    match format {
        LogFormat::Text => log.with_ansi(stderr().is_terminal()).try_init().ok(),
        LogFormat::Json => log.json().flatten_event(true).with_span_list(false).try_init().ok(),
    };
}
