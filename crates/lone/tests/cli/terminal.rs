//! `lone chat` in front of somebody: the editor, Ctrl-C, colours and the history, on a pseudo-terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};

use rustix::pty::{self, OpenptFlags};

use crate::machine::{Machine, wait_until};

/// A terminal with a chat in it.
struct Terminal {
    keyboard: File,
    screen: Arc<Mutex<Vec<u8>>>,
    child: Child,
    /// How much of the screen has been read.
    seen: usize,
}

impl Terminal {
    fn chat(machine: &Machine, flags: &[&str], environment: &[(&str, &str)]) -> Self {
        let controller = pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        pty::grantpt(&controller).unwrap();
        pty::unlockpt(&controller).unwrap();
        let name = pty::ptsname(&controller, Vec::new()).unwrap();
        let side = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let child = machine
            .process()
            .args(["chat", "--model", "demo", "--ctx", "256"])
            .args(flags)
            .env("TERM", "xterm")
            .envs(environment.iter().copied())
            .stdin(side.try_clone().unwrap())
            .stdout(side.try_clone().unwrap())
            .stderr(side)
            .spawn()
            .unwrap();
        let keyboard = File::from(controller);
        let screen = Arc::new(Mutex::new(Vec::new()));
        let (mut output, shown) = (keyboard.try_clone().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The other side's end is an error on some systems.
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                shown.lock().unwrap().extend_from_slice(&buffer[..count]);
            }
        });
        Terminal { keyboard, screen, child, seen: 0 }
    }

    fn press(&mut self, keys: impl AsRef<[u8]>) {
        self.keyboard.write_all(keys.as_ref()).unwrap();
    }

    /// Waits until `text` appears after all that was waited for before, and returns what came up to its end.
    fn wait_for(&mut self, text: &str) -> String {
        let found = |terminal: &Self| {
            let screen = terminal.screen.lock().unwrap();
            let shown = String::from_utf8_lossy(&screen[terminal.seen..]).into_owned();
            shown.find(text).map(|at| shown[..at + text.len()].to_owned())
        };
        wait_until(|| found(self).is_some());
        let shown = found(self).unwrap();
        self.seen += shown.len();
        shown
    }

    fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let screen = self.screen.lock().unwrap();
        (status, String::from_utf8_lossy(&screen).into_owned())
    }
}

const PROMPT: &str = "you> ";

#[test]
fn lines_are_edited_and_remembered_and_ctrl_d_ends_the_conversation() {
    let machine = Machine::new();
    let mut terminal = Terminal::chat(&machine, &[], &[("NO_COLOR", "1")]);
    terminal.wait_for("/help lists the commands");
    terminal.wait_for(PROMPT);
    terminal.press("What is the capital of Franz\x7f\x7fnce?\r");
    terminal.wait_for("lone> The capital of France is Paris.");
    terminal.wait_for(PROMPT);
    // Up and Return: the same line again.
    terminal.press("\x1b[A\r");
    terminal.wait_for("lone> The capital of France is Paris.");
    terminal.wait_for(PROMPT);
    terminal.press("/und\t\r");
    terminal.wait_for("taken back: What is the capital of France?");
    terminal.wait_for(PROMPT);
    terminal.press("\x03");
    terminal.wait_for("Ctrl-D or /exit ends the conversation");
    terminal.wait_for(PROMPT);
    terminal.press("\x04");
    let (status, screen) = terminal.end();
    assert_eq!(status.code(), Some(0), "{screen}");
    assert!(!screen.contains("\x1b[1m") && !screen.contains("\x1b[2m"), "{screen}");
    let history = machine.path().join(match cfg!(target_os = "macos") {
        true => "home/Library/Application Support/lone/chat_history",
        false => "home/.local/state/lone/chat_history",
    });
    let history = std::fs::read_to_string(history).unwrap();
    assert!(history.ends_with("\nWhat is the capital of France?\n/undo\n"), "{history}");
}

#[test]
fn several_lines_are_typed_with_alt_enter_or_between_fences() {
    let machine = Machine::new();
    let mut terminal = Terminal::chat(&machine, &[], &[("NO_COLOR", "1")]);
    terminal.wait_for(PROMPT);
    terminal.press("Copy this code:\x1b\rsize = insert(x, 28)\x1b\rreturn load(count, x)\r");
    terminal.wait_for("lone> size = insert(x, 28)\r\nreturn load(count, x)");
    terminal.wait_for(PROMPT);
    terminal.press("/reset\r");
    terminal.wait_for(PROMPT);
    terminal.press("\"\"\"Copy this code:\rsize = insert(x, 28)\rreturn load(count, x)\"\"\"\r");
    terminal.wait_for("lone> size = insert(x, 28)\r\nreturn load(count, x)");
    terminal.wait_for(PROMPT);
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0.code(), Some(0));
}

#[test]
fn ctrl_c_stops_the_answer_and_not_the_conversation() {
    let machine = Machine::new();
    // So hot that no answer ends by itself, on the slowest backend.
    let flags = ["--backend", "reference", "--temperature", "50", "--seed", "1"];
    let mut terminal = Terminal::chat(&machine, &flags, &[]);
    terminal.wait_for(PROMPT);
    for _ in 0..2 {
        terminal.press("What is the capital of France?\r");
        terminal.wait_for("lone> ");
        let kill = Command::new("kill").args(["-INT", &terminal.child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        terminal.wait_for("stopped after ");
        terminal.wait_for(PROMPT);
    }
    let kill = Command::new("kill").args(["-TERM", &terminal.child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let (status, screen) = terminal.end();
    assert_eq!(status.code(), Some(130), "{screen}");
    assert!(screen.contains("\x1b[1mlone> \x1b[0m") && screen.contains("\x1b[2mctx "), "{screen}");
}

#[test]
fn control_characters_in_an_answer_reach_a_file_and_no_terminal() {
    let machine = Machine::new();
    // So hot that every token is as likely as any other, those of single bytes among them.
    let flags = ["--temperature", "1000", "--seed", "2", "--max-new-tokens", "220"];
    let is_command = |text: &str| text.chars().any(|c| c.is_control() && !"\r\n\t".contains(c));
    let mut piped = machine.lone(&[&["chat", "--model", "demo", "--ctx", "256"], &flags[..]].concat());
    let piped = machine.outcome(piped.write_stdin("Hello\n"));
    assert!(is_command(&piped.stdout), "{:?}", piped.stdout);
    let mut terminal = Terminal::chat(&machine, &flags, &[("NO_COLOR", "1")]);
    terminal.wait_for(PROMPT);
    terminal.press("Hello\r");
    terminal.wait_for("lone> ");
    let answer = terminal.wait_for("prefill ");
    assert!(!is_command(&answer) && answer.contains('^'), "{answer:?}");
    terminal.press("/exit\r");
    assert_eq!(terminal.end().0.code(), Some(0));
}

/// By the lowest bit of the mask of ignored signals, where the system shows it.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| mask.ends_with(['1', '3', '5', '7', '9', 'b', 'd', 'f']))
}

#[test]
fn a_byte_that_is_no_text_costs_the_line_and_a_closed_terminal_the_program_at_once() {
    let machine = Machine::new();
    let mut terminal = Terminal::chat(&machine, &[], &[("NO_COLOR", "1")]);
    terminal.wait_for(PROMPT);
    terminal.press(b"caf\xe9\r");
    terminal.wait_for("this line is not UTF-8, and was left out");
    terminal.wait_for(PROMPT);
    terminal.press("What is the capital of France?\r");
    terminal.wait_for("lone> The capital of France is Paris.");
    terminal.wait_for(PROMPT);
    // Under `nohup` it is told not to end with its terminal.
    let signal = if is_hangup_ignored() { "-TERM" } else { "-HUP" };
    let sent = Command::new("kill").args([signal, &terminal.child.id().to_string()]).status();
    assert!(sent.unwrap().success());
    let (status, screen) = terminal.end();
    assert_eq!(status.code(), Some(130), "{screen}");
}
