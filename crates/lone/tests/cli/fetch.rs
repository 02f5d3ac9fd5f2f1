//! `--model org/name` through the whole program, against a hub on loopback.

use crate::fake_hub::{Behaviour, COMMIT, FakeHub};
use crate::machine::{Machine, Outcome, model};

const REPO: &str = "Org/Window-8";

fn hub() -> FakeHub {
    let files = std::fs::read_dir(model("micro/lfm3-window8")).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())
    });
    FakeHub::start(REPO, files.collect())
}

fn inspect(machine: &Machine, hub: &FakeHub, variables: &[(&str, &str)]) -> Outcome {
    let mut command = machine.lone(&["inspect", "--model", REPO]);
    command.env("HF_ENDPOINT", &hub.endpoint).envs(variables.iter().copied());
    let mut outcome = machine.outcome(&mut command);
    outcome.stderr = outcome.stderr.replace(&hub.endpoint, "[HUB]");
    outcome
}

#[test]
fn a_model_on_the_hub_is_fetched_once_and_then_used_offline() {
    let (machine, hub) = (Machine::new(), hub());
    let outcome = inspect(&machine, &hub, &[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(outcome.stderr, "fetching Org/Window-8 from [HUB]\n");
    assert!(outcome.stdout.starts_with("Window-8 (lfm3)\n"), "{}", outcome.stdout);
    let fetched = machine.path().join("home/.cache/huggingface/hub/models--Org--Window-8/snapshots");
    assert!(fetched.join(COMMIT).join("model.safetensors").is_file());
    hub.take_requests();
    let offline = inspect(&machine, &hub, &[("HF_HUB_OFFLINE", "1")]);
    assert_eq!((offline.code, offline.stdout), (0, outcome.stdout));
    assert_eq!(hub.take_requests().len(), 0);
}

#[test]
fn a_private_model_needs_the_token() {
    let (machine, hub) = (Machine::new(), hub());
    hub.behave(Behaviour { token: Some("hf_right".into()), ..Behaviour::default() });
    let outcome = inspect(&machine, &hub, &[]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(outcome.stderr, @r"
    error: [HUB] does not show Org/Window-8 to strangers
     hint: check the spelling; if the model is private, set HF_TOKEN (tokens: [HUB]/settings/tokens)
    ");
    let outcome = inspect(&machine, &hub, &[("HF_TOKEN", "hf_right")]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

#[test]
fn a_directory_of_that_name_is_used_instead_of_the_hub() {
    let (machine, hub) = (Machine::new(), hub());
    std::fs::create_dir_all(machine.path().join(REPO)).unwrap();
    let outcome = inspect(&machine, &hub, &[]);
    assert_eq!((outcome.code, hub.take_requests().len()), (1, 0), "{}", outcome.stderr);
}

#[test]
fn what_is_neither_a_directory_nor_a_repository_is_refused() {
    let outcome = Machine::new().run(&["inspect", "--model", "./nothing"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (1, ""));
    insta::assert_snapshot!(outcome.stderr, @r"
    error: there is no directory ./nothing
     hint: a model on the Hugging Face hub is written org/name; `demo` is built in
    ");
}
