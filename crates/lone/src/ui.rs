//! The only place that prints.
//!
//! Results go to stdout; notes, warnings, progress and errors to stderr. Colour and progress bars appear only on a
//! terminal; `--quiet` leaves results, warnings and errors. When the reader of stdout goes away the command ends
//! quietly.
//!
//! Names in foreign files and answers may hold control characters. No terminal gets them as such: see [`printable()`].

mod paint;
mod printable;
mod progress;

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use indicatif::{MultiProgress, ProgressDrawTarget};
use serde::Serialize;

use crate::environment::Environment;
use crate::failure::{Failure, UserError};
use paint::{Paint, Style};
use printable::printable;
pub(crate) use progress::Progress;
use progress::Unit;

/// How to speak to whoever started lone.
pub(crate) struct Ui {
    quiet: bool,
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    on_stdout: Paint,
    on_stderr: Paint,
    bars: MultiProgress,
}

impl Ui {
    /// Looks at what stdout and stderr are connected to.
    pub(crate) fn new(quiet: bool, environment: &Environment) -> Self {
        let dumb = environment.text("TERM") == Some("dumb");
        let plain = dumb || environment.get("NO_COLOR").is_some();
        let stdout_is_terminal = io::stdout().is_terminal();
        let stderr_is_terminal = io::stderr().is_terminal() && !dumb;
        let bars = if stderr_is_terminal && !quiet {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Ui {
            quiet,
            stdout_is_terminal,
            stderr_is_terminal,
            on_stdout: Paint { enabled: stdout_is_terminal && !plain },
            on_stderr: Paint { enabled: stderr_is_terminal && !plain },
            bars: MultiProgress::with_draw_target(bars),
        }
    }

    /// Writes part of the result at once: to a terminal as it can be shown, elsewhere as it is.
    ///
    /// # Errors
    /// [`Failure::OutputClosed`] when nobody reads any more, [`Failure::OutputFailed`] when it cannot be written.
    pub(crate) fn write(&self, text: &str) -> Result<(), Failure> {
        if self.stdout_is_terminal { self.put(&printable(text)) } else { self.put(text) }
    }

    fn put(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let written = self.bars.suspend(|| stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            _ => Failure::OutputFailed(UserError::new(format_args!("cannot write the output: {error}"))),
        })
    }

    /// Writes a line of the result.
    ///
    /// # Errors
    /// As [`Ui::write`].
    pub(crate) fn line(&self, line: impl fmt::Display) -> Result<(), Failure> {
        self.write(&format!("{line}\n"))
    }

    /// Writes a line of the result that begins a section.
    ///
    /// # Errors
    /// As [`Ui::write`].
    pub(crate) fn heading(&self, line: impl fmt::Display) -> Result<(), Failure> {
        self.put(&format!("{}\n", self.on_stdout.paint(Style::Bold, printable(&line.to_string()))))
    }

    /// Writes, so that it stands out, what comes before something else in the same line.
    ///
    /// # Errors
    /// As [`Ui::write`].
    pub(crate) fn label(&self, label: &str) -> Result<(), Failure> {
        self.put(&self.emphasized(label))
    }

    /// Writes the result as one JSON object.
    ///
    /// # Errors
    /// As [`Ui::write`].
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.line(serde_json::to_string_pretty(value).map_err(|error| Failure::Internal(error.into()))?)
    }

    /// Writes one of several results as a JSON object in a line.
    ///
    /// # Errors
    /// As [`Ui::write`].
    pub(crate) fn json_line(&self, value: &impl Serialize) -> Result<(), Failure> {
        self.line(serde_json::to_string(value).map_err(|error| Failure::Internal(error.into()))?)
    }

    /// Whether stdout takes colours.
    pub(crate) fn has_color(&self) -> bool {
        self.on_stdout.enabled
    }

    /// `text` for stdout, as it stands out.
    pub(crate) fn emphasized(&self, text: &str) -> String {
        self.on_stdout.paint(Style::Bold, text)
    }

    /// Says what matters less than what is around it, unless `--quiet`.
    pub(crate) fn aside(&self, line: impl fmt::Display) {
        if !self.quiet {
            self.tell(self.on_stderr.paint(Style::Faint, printable(&line.to_string())));
        }
    }

    /// Says what is going on, unless `--quiet`.
    pub(crate) fn note(&self, line: impl fmt::Display) {
        if !self.quiet {
            self.say(line);
        }
    }

    /// Says that something may not be as the user thinks.
    pub(crate) fn warn(&self, line: impl fmt::Display) {
        self.tell_as(Style::Yellow, "warning:", line);
    }

    /// What warns for somebody who outlives a borrow.
    pub(crate) fn warner(&self) -> impl Fn(&str) + Send + Sync + use<> {
        let (bars, paint) = (self.bars.clone(), self.on_stderr);
        move |line| tell_as(&bars, paint.paint(Style::Yellow, "warning:"), line)
    }

    /// Shows that `total` bytes will be worked through; the returned handle counts them.
    pub(crate) fn progress(&self, what: impl Into<String>, total: u64) -> Progress<'_> {
        Progress::new(self, printable(&what.into()).into_owned(), Unit::Bytes, total)
    }

    /// Shows that `total` things, called `plural`, will be worked through; the returned handle counts them.
    pub(crate) fn count(&self, what: impl Into<String>, plural: &'static str, total: usize) -> Progress<'_> {
        Progress::new(self, printable(&what.into()).into_owned(), Unit::Things(plural), total as u64)
    }

    /// Reports how the command ended and turns it into the exit code.
    pub(crate) fn conclude(&self, outcome: Result<(), Failure>) -> ExitCode {
        let Err(failure) = outcome else { return ExitCode::SUCCESS };
        match &failure {
            Failure::User(error) | Failure::Usage(error) | Failure::OutputFailed(error) => self.refuse(error),
            Failure::Internal(error) => {
                self.complain(
                    &format!("internal fault: {error:#}"),
                    Some("this is a bug in lone; please report it"),
                );
            }
            Failure::Interrupted(what) if what.is_empty() => {}
            Failure::Interrupted(what) => self.note(format_args!("interrupted: {what}")),
            Failure::OutputClosed => {}
        }
        ExitCode::from(failure.code())
    }

    /// Says why something was not done, where work goes on.
    pub(crate) fn refuse(&self, error: &UserError) {
        self.complain(&error.message, error.hint.as_deref());
    }

    fn complain(&self, message: &str, hint: Option<&str>) {
        self.tell_as(Style::Red, "error:", message);
        if let Some(hint) = hint {
            self.tell_as(Style::Cyan, " hint:", hint);
        }
    }

    /// Says what was asked for in passing, `--quiet` or not.
    pub(crate) fn say(&self, line: impl fmt::Display) {
        self.tell(printable(&line.to_string()));
    }

    /// Says what it is, in `style`, and then what it says.
    fn tell_as(&self, style: Style, label: &str, line: impl fmt::Display) {
        tell_as(&self.bars, self.on_stderr.paint(style, label), line);
    }

    /// Prints a line in which nothing foreign is left but what is printable.
    fn tell(&self, line: impl fmt::Display) {
        tell(&self.bars, line);
    }
}

fn tell_as(bars: &MultiProgress, label: impl fmt::Display, line: impl fmt::Display) {
    tell(bars, format_args!("{label} {}", printable(&line.to_string())));
}

fn tell(bars: &MultiProgress, line: impl fmt::Display) {
    // Nobody is left to tell when stderr itself is closed.
    bars.suspend(|| writeln!(io::stderr().lock(), "{line}").ok());
}

/// Prints what clap has to say, help or a usage error, and returns its exit code: 0 or 2.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // As everywhere: a closed pipe ends the program quietly.
    error.print().ok();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
