//! `lone chat`: turns, commands, and conversations kept in files.

use serde_json::Value;

use crate::machine::{Machine, Outcome};

const FRANCE: &str = "What is the capital of France?";
const JAPAN: &str = "What is the capital of Japan?";
const PARIS: &str = "The capital of France is Paris.";
const TOKYO: &str = "The capital of Japan is Tokyo.";

/// A conversation with the demo model, of which these are the lines.
fn chat(machine: &Machine, flags: &[&str], lines: &[&str]) -> Outcome {
    let mut command = machine.lone(&[&["chat", "--model", "demo", "--ctx", "256"][..], flags].concat());
    machine.outcome(command.write_stdin(lines.join("\n") + "\n"))
}

fn turns(outcome: &Outcome) -> Vec<Value> {
    outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What was said on stderr, without statistics and the conversion before the first turn.
fn remarks(outcome: &Outcome) -> Vec<&str> {
    let is_remark =
        |line: &&str| !["converting ", "prefill ", "ctx "].iter().any(|start| line.starts_with(start));
    outcome.stderr.lines().filter(is_remark).collect()
}

#[test]
fn each_line_is_answered_and_its_cost_follows_on_stderr() {
    let machine = Machine::new();
    let outcome = chat(&machine, &[], &[FRANCE, "", JAPAN]);
    assert_eq!((outcome.code, outcome.stdout), (0, format!("{PARIS}\n{TOKYO}\n")), "{}", outcome.stderr);
    let again = chat(&machine, &[], &[FRANCE]).masked();
    let (phases, ctx) = again.stderr.trim_end().split_once('\n').unwrap();
    assert_eq!(phases, "prefill 16 tokens in [N] s, [N] tok/s · decode 7 tokens in [N] s, [N] tok/s");
    assert!(ctx.starts_with("ctx 23/256 (9.0%) · mem ") && ctx.contains("B rss · "), "{ctx}");
    assert!(ctx.ends_with("B free"), "{ctx}");
    assert_eq!(chat(&machine, &["--quiet"], &[FRANCE]).stderr, "");
}

#[test]
fn the_second_turn_prefills_only_what_is_new() {
    let outcome = chat(&Machine::new(), &["--json"], &[FRANCE, JAPAN, FRANCE]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let turns = turns(&outcome);
    let stats = |turn: usize, pointer: &str| turns[turn]["stats"].pointer(pointer).unwrap().as_u64().unwrap();
    assert_eq!((turns[0]["text"].as_str(), turns[1]["text"].as_str()), (Some(PARIS), Some(TOKYO)));
    assert_eq!((stats(0, "/reused_tokens"), stats(0, "/prefill/tokens")), (0, 16));
    for turn in 1..3 {
        let before = stats(turn - 1, "/ctx/used");
        assert_eq!(stats(turn, "/reused_tokens"), before, "all that was there");
        // The token that ends the answer before, a line break, and the turn: all but the first token of a prompt.
        assert_eq!(stats(turn, "/prefill/tokens"), 17);
        assert_eq!(stats(turn, "/prefill/passes"), 1);
        assert_eq!(stats(turn, "/ctx/used"), before + 17 + stats(turn, "/decode/tokens"));
    }
    assert_eq!(stats(0, "/ctx/total"), 256);
    assert!(stats(0, "/memory/rss_bytes") > 0);
}

#[test]
fn turns_are_answered_again_without_computing_them_again_and_taken_back_for_good() {
    let lines = [FRANCE, JAPAN, "/retry", "/undo", JAPAN, "/reset", FRANCE, "/undo", "/undo"];
    let outcome = chat(&Machine::new(), &["--json"], &lines);
    let turns = turns(&outcome);
    let prefilled: Vec<u64> =
        turns.iter().map(|turn| turn["stats"]["prefill"]["tokens"].as_u64().unwrap()).collect();
    assert_eq!(prefilled, [16, 17, 0, 17, 16]);
    assert_eq!((turns[2]["text"].as_str(), turns[3]["text"].as_str()), (Some(TOKYO), Some(TOKYO)));
    assert_eq!(turns[4]["stats"]["ctx"]["used"], 23);
    let taken_back = format!("taken back: {JAPAN}");
    let again = format!("taken back: {FRANCE}");
    let expected =
        [&taken_back, &again, "error: nothing has been said yet", "error: 1 line refused, as said above"];
    assert_eq!((outcome.code, remarks(&outcome)), (1, expected.to_vec()));
}

#[test]
fn a_text_of_several_lines_is_one_turn() {
    let lines = ["\"\"\"Copy this code:", "size = insert(x, 28)", "return load(count, x)", "\"\"\""];
    let outcome = chat(&Machine::new(), &[], &lines);
    assert_eq!(outcome.stdout, "size = insert(x, 28)\nreturn load(count, x)\n", "{}", outcome.stderr);
}

#[test]
fn a_turn_that_does_not_fit_is_refused_with_the_numbers_and_leaves_the_conversation_as_it_was() {
    let long = "Repeat: ".to_owned() + &"very long ".repeat(200);
    let outcome = chat(&Machine::new(), &[], &[FRANCE, &long, JAPAN]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, &*format!("{PARIS}\n{TOKYO}\n")));
    let remarks = remarks(&outcome);
    let error = "error: this turn does not fit: it adds ";
    assert!(
        remarks[0].starts_with(error) && remarks[0].ends_with(" tokens to 23, and the context holds 256"),
        "{remarks:?}"
    );
    assert!(remarks[1].starts_with(" hint: /undo, /reset, or a bundle with --ctx "), "{remarks:?}");
    assert_eq!(remarks[2..], ["error: 1 line refused, as said above"]);
    let outcome = chat(&Machine::new(), &[], &[&long]);
    assert!(
        outcome.stderr.contains("\n hint: a bundle with --ctx "),
        "nothing to take back: {}",
        outcome.stderr
    );
}

#[test]
fn an_answer_ends_where_the_settings_or_the_context_say() {
    let machine = Machine::new();
    let outcome = chat(&machine, &[], &["/set max-new-tokens 3", FRANCE]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "The capital of\n"));
    assert_eq!(remarks(&outcome), ["cut off at 3 tokens, as max-new-tokens says"]);
    let flags = ["--ctx", "18", "--prefill", "8", "--json"];
    let mut command = machine.lone(&[&["chat", "--model", "demo"], &flags[..]].concat());
    let outcome = machine.outcome(command.write_stdin(FRANCE));
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let turn = &turns(&outcome)[0];
    assert_eq!((&turn["finish_reason"], &turn["stats"]["ctx"]["used"]), (&"length".into(), &18.into()));
}

#[test]
fn settings_change_and_are_listed_and_nonsense_is_refused() {
    let lines = ["/set temperature 5", "/set seed=7", FRANCE, "/retry", "/set seed 7", "/reset", FRANCE];
    let outcome = chat(&Machine::new(), &["--json", "--max-new-tokens", "12"], &lines);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let turns = turns(&outcome);
    assert_ne!(turns[0]["token_ids"], turns[1]["token_ids"], "another try is another answer");
    assert_eq!(turns[0]["token_ids"], turns[2]["token_ids"], "the same seed, from the beginning");
    let lines = [
        "/set top_p 0.5",
        "/set",
        "/set top-p 2",
        "/set top-p default",
        "/set warmth 1",
        "/nonsense",
        "/system",
    ];
    let outcome = chat(&Machine::new(), &["--system", "Be terse.", "--top-k", "3"], &lines);
    insta::assert_snapshot!(remarks(&outcome).join("\n"), @r#"
    max-new-tokens      the context
    temperature         0
    top-k               3
    top-p               0.5
    min-p               0
    repetition-penalty  1
    presence-penalty    0
    frequency-penalty   0
    seed                another each time
    error: invalid value '2' for '--top-p <PROBABILITY>': must be above 0 and at most 1
    error: there is no setting warmth; there are max-new-tokens, temperature, top-k, top-p, min-p, repetition-penalty, presence-penalty, frequency-penalty, seed
    error: there is no command /nonsense
     hint: /help lists them; //… says a text that begins with a slash
    Be terse.
    error: 3 lines refused, as said above
    "#);
}

#[test]
fn help_and_statistics_come_when_they_are_asked_for_even_in_a_quiet_run() {
    let outcome = chat(&Machine::new(), &["--quiet"], &["/help", FRANCE, "/stats", "/exit", JAPAN]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, &*format!("{PARIS}\n")));
    let masked = outcome.masked();
    assert!(masked.stderr.lines().last().unwrap().starts_with("mem "), "{}", masked.stderr);
    let lines: Vec<&str> = masked.stderr.lines().filter(|line| !line.starts_with("mem ")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    /help                        list the commands
    /exit                        end the conversation, as Ctrl-D does
    /reset                       forget what was said; the model stays loaded
    /system [TEXT|none]          show or change what the model is told first; the conversation stays
    /retry                       have the last turn answered again
    /undo                        take the last turn and its answer back
    /set [NAME VALUE|default]    show or change a setting, as in /set temperature 0.7
    /stats                       show what the conversation has cost so far
    /save FILE                   keep the conversation, with all the model has computed for it
    /load FILE                   go on with a conversation that was kept
    """                          begins and ends a text of several lines; Alt-Enter begins another line
    //…                          says a text that begins with a slash
    Ctrl-C                       stops an answer
    1 turn, 0 tokens not computed again
    prefill 16 tokens in [N] s, [N] tok/s · decode 7 tokens in [N] s, [N] tok/s
    ctx 23/256 (9.0%) · caches 147 kB, and [N] kB to go back by
    "#);
}

#[test]
fn a_conversation_that_was_kept_goes_on_in_another_process_as_it_would_have_in_this_one() {
    let machine = Machine::new();
    let here = chat(
        &machine,
        &["--json", "--system", "Be terse."],
        &[FRANCE, "/save talk.lone", "/save talk.lone", JAPAN],
    );
    assert_eq!(here.code, 0, "{}", here.stderr);
    let there = chat(&machine, &["--json"], &["/load talk.lone", "/system", JAPAN]);
    assert_eq!(there.code, 0, "{}", there.stderr);
    let (here_turn, there_turn) = (&turns(&here)[1], &turns(&there)[0]);
    assert_eq!(here_turn["token_ids"], there_turn["token_ids"]);
    for field in ["reused_tokens", "ctx"] {
        assert_eq!(here_turn["stats"][field], there_turn["stats"][field]);
    }
    assert_eq!(here_turn["stats"]["prefill"]["tokens"], there_turn["stats"]["prefill"]["tokens"]);
    let held = turns(&here)[0]["stats"]["ctx"]["used"].to_string();
    let loaded = format!("loaded 1 turn of {held} tokens from talk.lone");
    assert_eq!(remarks(&there), [loaded.as_str(), "Be terse."]);
}

#[test]
fn files_that_are_no_conversation_of_this_bundle_are_refused_and_never_overwritten() {
    let machine = Machine::new();
    let path = |name: &str| machine.path().join(name);
    assert_eq!(chat(&machine, &[], &[FRANCE, "/save talk.lone"]).code, 0);
    let mut damaged = std::fs::read(path("talk.lone")).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(path("damaged.lone"), damaged).unwrap();
    std::fs::write(path("notes.txt"), "notes").unwrap();
    let lines = [
        "/load damaged.lone",
        "/load notes.txt",
        "/load missing",
        "/save notes.txt",
        "/save no/such/directory",
        FRANCE,
    ];
    let outcome = chat(&machine, &[], &lines);
    assert_eq!(outcome.stdout, format!("{PARIS}\n"), "the conversation goes on");
    insta::assert_snapshot!(remarks(&outcome).join("\n"), @r#"
    error: cannot load damaged.lone: it is damaged: its content does not match its hash
    error: cannot load notes.txt: it is not a saved session
    error: cannot read missing: No such file or directory (os error 2)
    error: notes.txt is there and is no conversation
     hint: /save another file
    error: cannot write no/such/directory: No such file or directory (os error 2)
    error: 5 lines refused, as said above
    "#);
    assert_eq!(std::fs::read_to_string(path("notes.txt")).unwrap(), "notes");
    let mut other = machine.lone(&["chat", "--model", "demo", "--ctx", "128"]);
    let outcome = machine.outcome(other.write_stdin("/load talk.lone\n"));
    let error = "error: cannot load talk.lone: it was saved with another bundle of the same tiny-lfm3, converted with --ctx 256";
    let hint = " hint: lone chat with these flags, or that bundle";
    let remarks = remarks(&outcome);
    assert!(remarks.contains(&error) && remarks.contains(&hint), "{}", outcome.stderr);
}

#[test]
fn names_in_a_file_are_shown_and_not_obeyed() {
    let machine = Machine::new();
    assert_eq!(chat(&machine, &[], &[FRANCE, "/save talk.lone"]).code, 0);
    let file = std::fs::read(machine.path().join("talk.lone")).unwrap();
    let length = u64::from_le_bytes(file[16..24].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&file[24..24 + length]).unwrap();
    header["model"] = "\x1b]0;title\x07\x1b[31mred".into();
    (header["bundle"], header["source"]) = ("another".into(), "another".into());
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    let mut made = [&file[..16], &length, header.as_bytes()].concat();
    let hash = blake3::hash(&made);
    made.extend(hash.as_bytes());
    std::fs::write(machine.path().join("made.lone"), made).unwrap();
    let outcome = chat(&machine, &["--quiet"], &["/load made.lone"]);
    let expected = "error: cannot load made.lone: it was saved with another bundle, of ^[]0;title^G^[[31mred";
    assert_eq!(remarks(&outcome)[0], expected);
}

/// Whether a file holds these bytes anywhere.
fn holds(file: &[u8], bytes: &[u8]) -> bool {
    file.windows(bytes.len()).any(|window| window == bytes)
}

#[test]
fn what_was_taken_back_is_not_in_the_file_and_not_in_the_context() {
    let machine = Machine::new();
    let lines = [
        FRANCE,
        "/save one",
        JAPAN,
        "/save two",
        "/undo",
        "/save undone",
        "/stats",
        "/system Be brief.",
        "/save other",
        "/stats",
        "/reset",
        "/save reset",
        "/stats",
    ];
    let outcome = chat(&machine, &["--quiet", "--system", "Be terse."], &lines);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let file = |name: &str| std::fs::read(machine.path().join(name)).unwrap();
    // All but how many answers there have been, and the hash.
    let text = |file: Vec<u8>| String::from_utf8_lossy(&file[..file.len() - 32]).into_owned();
    let undone = text(file("undone")).replace("\"answers\":2", "\"answers\":1");
    assert!(text(file("one")) == undone, "as it was before what was taken back");
    assert!(holds(&file("two"), b"Japan") && !holds(&file("undone"), b"Japan"));
    assert!(!holds(&file("other"), b"terse") && holds(&file("other"), b"France"));
    assert!(!holds(&file("reset"), b"France") && holds(&file("reset"), b"\"tokens\":[]"));
    assert!(file("reset").len() + 1000 < file("one").len(), "no rows are left");
    let used: Vec<&str> = outcome.stderr.lines().filter_map(|line| line.strip_prefix("ctx ")).collect();
    assert!(
        !used[0].starts_with("0/") && used[1..].iter().all(|line| line.starts_with("0/256 ")),
        "{used:?}"
    );
    let there = chat(&machine, &["--json"], &["/load undone", JAPAN, "/load reset", FRANCE]);
    let turns = turns(&there);
    assert_eq!(turns[0]["stats"]["prefill"]["tokens"], 17, "{}", there.stderr);
    assert_eq!(turns[1]["stats"]["reused_tokens"], 0);
}

#[cfg(unix)]
#[test]
fn a_conversation_is_saved_where_a_link_points_and_at_home_and_never_to_a_pipe() {
    let machine = Machine::new();
    let path = |name: &str| machine.path().join(name);
    std::fs::create_dir_all(path("home")).unwrap();
    std::fs::create_dir_all(path("shelf")).unwrap();
    std::os::unix::fs::symlink("shelf/there", path("link")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    let lines = [
        FRANCE,
        "/save link",
        "/save link",
        "/load link",
        "/save ~/kept",
        "/load ~/kept",
        "/save pipe",
        "/load pipe",
        "/load shelf",
    ];
    let outcome = chat(&machine, &["--quiet"], &lines);
    insta::assert_snapshot!(remarks(&outcome).join("\n"), @r#"
    error: cannot write pipe: not a regular file
    error: cannot read pipe: not a regular file
    error: cannot read shelf: not a regular file
    error: 3 lines refused, as said above
    "#);
    assert!(path("link").is_symlink() && path("shelf/there").is_file() && path("home/kept").is_file());
}

#[test]
fn a_line_that_is_no_text_is_refused_and_the_conversation_goes_on() {
    let machine = Machine::new();
    let mut command = machine.lone(&["chat", "--model", "demo", "--ctx", "256", "--quiet"]);
    let outcome = machine.outcome(command.write_stdin([b"caf\xe9\n", FRANCE.as_bytes()].concat()));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, &*format!("{PARIS}\n")));
    assert_eq!(remarks(&outcome)[0], "error: this line is not UTF-8, and was left out");
}

#[cfg(target_os = "linux")]
#[test]
fn an_output_that_takes_no_more_ends_the_conversation() {
    let machine = Machine::new();
    let lone = machine.program().display().to_string();
    let script =
        format!("printf '{FRANCE}\\n{JAPAN}\\n' | {lone} chat --model demo --ctx 256 --quiet > /dev/full");
    let outcome = machine.outcome(&mut machine.shell(&script));
    let expected = "error: cannot write the output: No space left on device (os error 28)\n";
    assert_eq!((outcome.code, outcome.stderr.as_str()), (1, expected));
}

#[test]
fn a_conversation_that_was_forgotten_leaves_nothing_to_go_back_by() {
    let outcome = chat(&Machine::new(), &["--quiet"], &[FRANCE, "/reset", "/stats"]);
    assert!(outcome.stderr.contains(", and 0 B to go back by\n"), "{}", outcome.stderr);
}

#[test]
fn guesses_are_counted_and_change_no_answer() {
    let question = ["\"\"\"Copy this code:", "size = insert(x, 28)", "return load(count, x)", "\"\"\""];
    let machine = Machine::new();
    let outcome = chat(
        &machine,
        &["--json", "--spec", "suffix", "--spec-cost", "1.4"],
        &[&question[..], &["/retry", "/save s", "/load s", "/retry", "/stats"]].concat(),
    );
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let all = outcome.stderr.lines().filter(|line| line.contains(" drafts accepted, ")).count();
    assert_eq!(all, 1, "{}", outcome.stderr);
    for turn in turns(&outcome) {
        assert_eq!(turn["text"], "size = insert(x, 28)\nreturn load(count, x)");
        assert!(turn["stats"]["spec"]["accepted"].as_u64() > Some(0), "{turn}");
    }
    let outcome = chat(&machine, &["--spec-ngram"], &[FRANCE]);
    assert!(outcome.stderr.contains(" drafts accepted, 1.0 tokens a pass\n"), "{}", outcome.stderr);
}

#[test]
fn a_model_without_a_tokenizer_or_a_text_without_an_end_is_refused() {
    let machine = Machine::new();
    let model = crate::machine::model("micro/lfm3-window8");
    let outcome = machine.run(&["chat", "--model", model.to_str().unwrap()]);
    let expected = "error: lfm3-window8 has no tokenizer, so nobody can talk with it\n \
                    hint: `lone run --prompt-ids 1,5,7` gives it tokens\n";
    assert_eq!((outcome.code, outcome.stderr.as_str()), (1, expected));
    let outcome = chat(&machine, &[], &["\"\"\"What is"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    assert!(
        outcome.stderr.ends_with("error: stdin ends before the \"\"\" that closes a text\n"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_checkpoint_without_a_template_is_talked_to_in_chatml() {
    let machine = Machine::new();
    let bare = machine.path().join("bare");
    std::fs::create_dir(&bare).unwrap();
    for file in crate::machine::names(&crate::machine::model("tiny-lfm3")) {
        if file != "chat_template.jinja" {
            std::fs::copy(crate::machine::model("tiny-lfm3").join(&file), bare.join(&file)).unwrap();
        }
    }
    let mut talk = machine.lone(&["chat", "--model", "bare", "--quiet"]);
    let outcome = machine.outcome(talk.write_stdin(format!("{FRANCE}\n{JAPAN}\n")));
    assert_eq!((outcome.stdout, outcome.stderr.as_str()), (format!("{PARIS}\n{TOKYO}\n"), ""));
    let outcome = machine.run(&["run", "--model", "bare", "--quiet", "--chat", "--prompt", FRANCE]);
    assert_eq!(outcome.stdout, format!("{PARIS}\n"));
}
