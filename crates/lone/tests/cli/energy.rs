//! What answers cost in energy: shown where there is a meter, and not at all where there is none.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use crate::machine::Machine;
use crate::serve;

/// A processor whose energy counter goes up by a hundredth of a joule each millisecond or so.
struct Processor {
    is_off: Arc<AtomicBool>,
    counting: Option<JoinHandle<()>>,
}

impl Processor {
    fn of(machine: &Machine) -> Self {
        let zone = machine.path().join("powercap/intel-rapl:0");
        std::fs::create_dir_all(&zone).unwrap();
        std::fs::write(zone.join("name"), "package-0\n").unwrap();
        std::fs::write(zone.join("max_energy_range_uj"), "262143328850\n").unwrap();
        set(&zone, 0);
        let is_off = Arc::new(AtomicBool::new(false));
        let off = Arc::clone(&is_off);
        let counting = thread::spawn(move || {
            for step in 1u64.. {
                if off.load(Ordering::Relaxed) {
                    break;
                }
                set(&zone, 10_000 * step);
                thread::sleep(Duration::from_millis(1));
            }
        });
        Processor { is_off, counting: Some(counting) }
    }
}

/// Replaces the counter as a whole: nobody reads half a number.
fn set(zone: &Path, microjoules: u64) {
    let new: PathBuf = zone.join("new");
    std::fs::write(&new, format!("{microjoules}\n")).unwrap();
    std::fs::rename(new, zone.join("energy_uj")).unwrap();
}

impl Drop for Processor {
    fn drop(&mut self) {
        self.is_off.store(true, Ordering::Relaxed);
        self.counting.take().map(JoinHandle::join);
    }
}

/// On a backend that takes its time: what is over too soon for the meter is not measured.
const RUN: [&str; 11] = [
    "run",
    "--model",
    "demo",
    "--ctx",
    "64",
    "--backend",
    "ane-sim",
    "--chat",
    "--prompt",
    "What is the capital of France?",
    "--json",
];

/// What an attempt brings at last: on a busy machine, which publishes seldom, one may be over too soon for the meter.
fn told<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    (0..50).find_map(|_| attempt()).expect("an answer was long enough for the meter")
}

#[test]
fn an_answer_says_what_it_used_by_phase_and_rail() {
    let machine = Machine::new();
    let _processor = Processor::of(&machine);
    let report = told(|| {
        let outcome = machine.run(&RUN);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        ["prefill", "decode"]
            .iter()
            .all(|phase| report["stats"][phase]["energy"].is_object())
            .then_some(report)
    });
    for phase in ["prefill", "decode"] {
        let energy = &report["stats"][phase]["energy"];
        assert_eq!(energy["rails"][0]["rail"], "package-0", "{energy}");
        assert!(energy["rails"][0]["idle_watts"].as_f64().unwrap() > 0.0, "{energy}");
        let tokens = report["stats"][phase]["tokens"].as_f64().unwrap();
        let by_token = energy["joules_per_token"].as_f64().unwrap();
        assert!((by_token * tokens - energy["joules"].as_f64().unwrap()).abs() < 1e-9, "{energy}");
    }
    told(|| {
        let text = machine.run(&RUN[..RUN.len() - 1]);
        (text.stderr.matches(" W above idle, ").count() == 2).then_some(())
    });
}

#[test]
fn without_a_meter_nothing_is_said() {
    let machine = Machine::new();
    let report: Value = serde_json::from_str(&machine.run(&RUN).stdout).unwrap();
    assert_eq!(report["stats"]["decode"].get("energy"), None);
    assert!(!machine.run(&RUN[..RUN.len() - 1]).stderr.contains("J/token"));
}

#[test]
fn turns_of_a_chat_and_decoding_in_a_bench_say_it_too() {
    let machine = Machine::new();
    let _processor = Processor::of(&machine);
    let energy = told(|| {
        let mut chat =
            machine.lone(&["chat", "--model", "demo", "--ctx", "64", "--backend", "ane-sim", "--json"]);
        let outcome = machine.outcome(chat.write_stdin("What is the capital of France?\n"));
        let turn: Value = serde_json::from_str(&outcome.stdout).unwrap();
        turn["stats"]["decode"].get("energy").cloned()
    });
    assert_eq!(energy["rails"][0]["rail"], "package-0", "{energy}");

    let flags = ["--ctx", "64", "--prompt-tokens", "4", "--gen", "48", "--repeat", "1", "--json"];
    let energy = told(|| {
        let outcome = machine.run(&[&["bench", "--model", "demo"][..], &flags].concat());
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        report["rows"][0]["decode"]["by_context"][0].get("energy").cloned()
    });
    assert!(energy["joules_per_token"].is_number() && energy["active_watts"].is_number(), "{energy}");
}

#[test]
#[cfg(unix)]
fn a_server_counts_joules_among_its_metrics_and_with_answers() {
    let machine = Machine::new();
    let (child, address) = serve::start(&machine, &[]);
    // Without the tokens that end it, an answer of many.
    let body = r#"{"messages": [{"role": "user", "content": "Count from 3 to 9."}], "max_tokens": 200,
        "logit_bias": {"7": -100, "2": -100}}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\ncontent-type: application/json";
    let reply = serve::ask(&address, head, body);
    assert!(reply.starts_with("HTTP/1.1 200 ") && !reply.contains("energy"), "{reply}");
    assert!(!serve::ask(&address, "GET /metrics HTTP/1.1", "").contains("energy"));
    serve::end(child);

    let _processor = Processor::of(&machine);
    let (child, address) = serve::start(&machine, &[]);
    let reply = told(|| Some(serve::ask(&address, head, body)).filter(|reply| reply.contains("energy")));
    assert!(reply.contains(r#""energy":{"joules":"#) && reply.contains(r#""active_watts":"#), "{reply}");
    let metrics = serve::ask(&address, "GET /metrics HTTP/1.1", "");
    for number in ["energy_joules_total", "energy_watts", "energy_active_watts", "energy_joules_per_token"] {
        assert!(metrics.contains(&format!("lone_{number}{{rail=\"package-0\"}} ")), "{number}: {metrics}");
    }
    serve::end(child);
}
