//! The client against a server that plays the hub.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fake_hub::{Behaviour, COMMIT, FakeHub, sha256};
use super::*;
use crate::environment::Environment;

const REPO: &str = "Org/Model-1";

const CONFIG: &[u8] = include_bytes!("../../../../models/micro/lfm3-window8/config.json");

/// A hub with one model, a cache for its files, and somebody to fetch them.
struct Scene {
    hub: FakeHub,
    home: tempfile::TempDir,
    ui: Ui,
    interrupt: Interrupt,
}

impl Scene {
    fn new() -> Self {
        Scene::with_files(single_file_checkpoint())
    }

    fn with_files(files: Vec<(String, Vec<u8>)>) -> Self {
        Scene {
            hub: FakeHub::start(REPO, files),
            home: tempfile::tempdir().unwrap(),
            ui: Ui::new(true, &Environment::default()),
            interrupt: Interrupt::default(),
        }
    }

    fn fetch_with(&self, change: impl FnOnce(&mut Settings)) -> Result<PathBuf, HubError> {
        let mut settings = Settings {
            endpoint: self.hub.endpoint.clone(),
            token: None,
            cache: self.home.path().into(),
            offline: false,
            first_pause: Duration::from_millis(1),
        };
        change(&mut settings);
        Hub::new(settings, &self.interrupt, &self.ui).fetch(&REPO.parse().unwrap())
    }

    fn fetch(&self) -> Result<PathBuf, HubError> {
        self.fetch_with(|_| ())
    }

    fn repo_dir(&self) -> PathBuf {
        self.home.path().join("models--Org--Model-1")
    }
}

fn weights(count: usize) -> Vec<u8> {
    (0..count).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn single_file_checkpoint() -> Vec<(String, Vec<u8>)> {
    vec![
        ("README.md".into(), b"not wanted".to_vec()),
        ("config.json".into(), CONFIG.to_vec()),
        ("model.safetensors".into(), weights(100_000)),
        ("pytorch_model.bin".into(), b"not wanted".to_vec()),
        ("tokenizer.json".into(), b"{\"a\": 1}".to_vec()),
    ]
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_checkpoint_arrives_in_the_hubs_cache_layout() {
    let scene = Scene::new();
    let dir = scene.fetch().unwrap();
    assert_eq!(dir, scene.repo_dir().join("snapshots").join(COMMIT));
    assert_eq!(names(&dir), ["config.json", "model.safetensors", "tokenizer.json"]);
    assert_eq!(std::fs::read(dir.join("model.safetensors")).unwrap(), weights(100_000));
    assert_eq!(std::fs::read_to_string(scene.repo_dir().join("refs/main")).unwrap(), COMMIT);
    let blob = scene.repo_dir().join("blobs").join(sha256(&weights(100_000)));
    assert_eq!(std::fs::canonicalize(dir.join("model.safetensors")).unwrap(), blob.canonicalize().unwrap());
}

#[test]
fn shards_are_those_the_index_names() {
    let index = br#"{"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}"#;
    let mut files = single_file_checkpoint();
    files.retain(|(name, _)| name != "model.safetensors");
    files.push(("model.safetensors.index.json".into(), index.to_vec()));
    for shard in ["model-1.safetensors", "model-2.safetensors", "other.safetensors"] {
        files.push((shard.into(), shard.into()));
    }
    let scene = Scene::with_files(files);
    let dir = scene.fetch().unwrap();
    let weights: Vec<String> =
        names(&dir).into_iter().filter(|name| name.ends_with(".safetensors")).collect();
    assert_eq!(weights, ["model-1.safetensors", "model-2.safetensors"]);
}

#[test]
fn a_second_fetch_asks_only_which_commit_it_is() {
    let scene = Scene::new();
    scene.fetch().unwrap();
    scene.hub.take_requests();
    scene.fetch().unwrap();
    let paths: Vec<String> = scene.hub.take_requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/api/models/Org/Model-1/revision/main"]);
}

#[test]
fn the_token_goes_to_the_hub_and_to_nobody_else() {
    let scene = Scene::new();
    scene.hub.behave(Behaviour { token: Some("hf_secret".into()), ..Behaviour::default() });
    scene.fetch_with(|settings| settings.token = Some("hf_secret".into())).unwrap();
    let requests = scene.hub.take_requests();
    assert!(requests.iter().any(|request| !request.to_hub), "nothing was asked of the store");
    for request in requests {
        assert_eq!(request.headers.contains_key("authorization"), request.to_hub, "{request:?}");
    }
}

#[test]
fn a_cut_download_continues_where_it_ended() {
    let scene = Scene::new();
    scene.hub.behave(Behaviour { cuts: 2, cut_at: 30_000, ..Behaviour::default() });
    let dir = scene.fetch().unwrap();
    assert_eq!(std::fs::read(dir.join("model.safetensors")).unwrap(), weights(100_000));
    let ranges: Vec<Option<String>> = scene
        .hub
        .take_requests()
        .iter()
        .filter(|request| !request.to_hub)
        .map(|request| request.headers.get("range").cloned())
        .collect();
    assert_eq!(ranges, [None, Some("bytes=30000-".into()), Some("bytes=60000-".into())]);
}

#[test]
fn what_an_earlier_process_left_is_continued() {
    let scene = Scene::new();
    let blobs = scene.repo_dir().join("blobs");
    std::fs::create_dir_all(&blobs).unwrap();
    let incomplete = blobs.join(format!("{}.incomplete", sha256(&weights(100_000))));
    std::fs::write(&incomplete, &weights(100_000)[..99_000]).unwrap();
    let dir = scene.fetch().unwrap();
    assert_eq!(std::fs::read(dir.join("model.safetensors")).unwrap(), weights(100_000));
    let stored = scene.hub.take_requests().into_iter().find(|request| !request.to_hub).unwrap();
    assert_eq!(stored.headers["range"], "bytes=99000-");
    assert!(!incomplete.exists());
}

#[test]
fn a_server_without_ranges_starts_again() {
    let scene = Scene::new();
    scene.hub.behave(Behaviour { cuts: 1, cut_at: 30_000, no_ranges: true, ..Behaviour::default() });
    let dir = scene.fetch().unwrap();
    assert_eq!(std::fs::read(dir.join("model.safetensors")).unwrap(), weights(100_000));
}

#[test]
fn content_with_another_hash_is_refused_and_deleted() {
    let scene = Scene::new();
    scene.hub.behave(Behaviour { corrupt: true, ..Behaviour::default() });
    let error = scene.fetch().unwrap_err();
    assert!(matches!(&error, HubError::Hash { file, .. } if file == "model.safetensors"), "{error}");
    let left = names(&scene.repo_dir().join("blobs"));
    assert!(left.iter().all(|name| name.len() == 40), "{left:?}");
}

#[test]
fn a_short_outage_is_waited_out_and_a_long_one_reported() {
    let scene = Scene::new();
    scene.hub.behave(Behaviour { outages: 4, ..Behaviour::default() });
    scene.fetch().unwrap();
    let scene = Scene::new();
    scene.hub.behave(Behaviour { outages: 99, ..Behaviour::default() });
    let error = scene.fetch().unwrap_err();
    assert!(matches!(error, HubError::Status { status: 503, .. }), "{error}");
    assert_eq!(scene.hub.take_requests().len(), 5);
}

#[test]
fn when_the_hub_is_away_the_earlier_download_serves_at_once() {
    let scene = Scene::new();
    let dir = scene.fetch().unwrap();
    // Port 9 is discard's; nobody listens there.
    let away = |settings: &mut Settings| settings.endpoint = "http://127.0.0.1:9".into();
    assert_eq!(scene.fetch_with(away).unwrap(), dir);
    assert!(matches!(Scene::new().fetch_with(away).unwrap_err(), HubError::Network { .. }));
    scene.hub.behave(Behaviour { outages: 99, ..Behaviour::default() });
    scene.hub.take_requests();
    assert_eq!(scene.fetch().unwrap(), dir);
    assert_eq!(scene.hub.take_requests().len(), 1);
}

#[test]
fn offline_asks_nobody() {
    let scene = Scene::new();
    let offline = |settings: &mut Settings| settings.offline = true;
    assert!(matches!(scene.fetch_with(offline).unwrap_err(), HubError::Offline { .. }));
    let dir = scene.fetch().unwrap();
    scene.hub.take_requests();
    assert_eq!(scene.fetch_with(offline).unwrap(), dir);
    assert_eq!(scene.hub.take_requests().len(), 0);
}

#[test]
fn an_incomplete_snapshot_does_not_pass_for_a_download() {
    let scene = Scene::new();
    let dir = scene.fetch().unwrap();
    std::fs::remove_file(dir.join("model.safetensors")).unwrap();
    assert!(matches!(scene.fetch_with(|s| s.offline = true).unwrap_err(), HubError::Offline { .. }));
    scene.fetch().unwrap();
    assert!(dir.join("model.safetensors").is_file());
}

#[test]
fn each_refusal_has_its_own_message() {
    let table = [
        (404, "RepoNotFound", "has no model Org/Model-1"),
        (404, "RevisionNotFound", "has no revision `main`"),
        (401, "RepoNotFound", "does not show Org/Model-1 to strangers"),
        (401, "GatedRepo", "its licence must be accepted"),
        (403, "GatedRepo", "its licence must be accepted"),
        (400, "", "answered 400"),
    ];
    let scene = Scene::new();
    for (status, code, expected) in table {
        scene.hub.behave(Behaviour { refuse: Some((status, code)), ..Behaviour::default() });
        let error = scene.fetch().unwrap_err().to_string();
        assert!(error.contains(expected), "{status} {code}: {error}");
        assert_eq!(scene.hub.take_requests().len(), 1, "{status} {code}");
    }
    assert!(!scene.repo_dir().exists());
}

#[test]
fn a_repository_without_safetensors_is_refused_before_anything_is_fetched() {
    let mut files = single_file_checkpoint();
    files.retain(|(name, _)| name != "model.safetensors");
    let scene = Scene::with_files(files);
    let error = scene.fetch().unwrap_err();
    assert!(matches!(error, HubError::NotACheckpoint { missing: "model.safetensors", .. }), "{error}");
    assert_eq!(scene.hub.take_requests().len(), 1);
}

#[test]
fn a_model_that_is_not_known_is_refused_before_its_weights_are_fetched() {
    let mut files = single_file_checkpoint();
    files.retain(|(name, _)| name != "config.json");
    files.push(("config.json".into(), br#"{"model_type": "llama"}"#.to_vec()));
    let scene = Scene::with_files(files);
    let error = scene.fetch().unwrap_err();
    assert!(error.to_string().contains("\"llama\""), "{error}");
    assert!(scene.hub.take_requests().iter().all(|request| !request.path.contains("model.safetensors")));
}

#[test]
fn an_index_that_points_elsewhere_is_refused() {
    for shard in ["../../etc/passwd.safetensors", "model.bin"] {
        let index = format!(r#"{{"weight_map": {{"a": "{shard}"}}}}"#);
        assert!(listing::shards(index.as_bytes()).is_err(), "{shard}");
    }
}

#[test]
fn an_interrupted_download_keeps_what_has_arrived() {
    let scene = Scene::new();
    let blobs = scene.repo_dir().join("blobs");
    std::fs::create_dir_all(&blobs).unwrap();
    let incomplete = blobs.join(format!("{}.incomplete", sha256(&weights(100_000))));
    std::fs::write(&incomplete, &weights(100_000)[..99_000]).unwrap();
    scene.interrupt.raise();
    let error = scene.fetch().unwrap_err();
    assert!(matches!(error, HubError::Interrupted { .. }), "{error}");
    assert_eq!(std::fs::metadata(&incomplete).unwrap().len(), 99_000);
}
