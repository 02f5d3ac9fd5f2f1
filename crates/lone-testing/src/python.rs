//! The Python side of the conformance tests: what coremltools makes, and what it says of our packages.
//!
//! `LONE_PYTHON` may name a Python that has `tools/requirements.txt` installed. Without it an environment is made
//! under `target/`, once, which takes `python3` with `venv` and a package index to install from.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde::Deserialize;

/// A Python that has what `tools/requirements.txt` lists.
///
/// # Panics
/// If there is none and none can be made.
pub fn python() -> Command {
    static PYTHON: LazyLock<PathBuf> =
        LazyLock::new(|| env::var_os("LONE_PYTHON").map_or_else(make_environment, PathBuf::from));
    Command::new(&*PYTHON)
}

/// The Python of the environment under `target/`, made if it is not there or not of these requirements.
fn make_environment() -> PathBuf {
    let target = workspace().join("target");
    let environment = target.join("python");
    let (python, stamp) = (environment.join("bin/python"), environment.join("requirements.txt"));
    let requirements = tool("requirements.txt");
    let wanted = fs::read(&requirements).expect("the list of requirements");
    fs::create_dir_all(&target).expect("a target directory");
    let lock = File::create(target.join("python.lock")).expect("a lock file");
    lock.lock().expect("a lock against other tests that make it too");
    if fs::read(&stamp).is_ok_and(|found| found == wanted) {
        return python;
    }
    succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment));
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    succeed(Command::new(&python).args(pip).arg(&requirements));
    fs::write(&stamp, wanted).expect("a stamp in the new environment");
    python
}

fn succeed(command: &mut Command) {
    let hint = "set LONE_PYTHON to a Python with tools/requirements.txt installed";
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {hint}"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}; {hint}\n{message}", output.status);
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The script of that name in `tools/`.
pub fn tool(name: &str) -> PathBuf {
    workspace().join("tools").join(name)
}

/// Runs a script of `tools/` and gives what it printed.
///
/// # Panics
/// With all of its output if it fails.
pub fn run_tool(name: &str, args: &[&Path]) -> String {
    let output = output_of_tool(name, args);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name} failed, {}:\n{out}{err}", output.status);
    out.into_owned()
}

/// Runs a script of `tools/`, whether it succeeds or not.
///
/// # Panics
/// If it cannot be started.
pub fn output_of_tool(name: &str, args: &[&Path]) -> Output {
    let run = python().arg(tool(name)).args(args).output();
    run.unwrap_or_else(|error| panic!("{name} cannot be started: {error}"))
}

/// A constant of a package, as coremltools reads it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Weight {
    /// The function it is in.
    pub function: String,
    /// The value it is, or that the operation makes which takes it.
    pub value: String,
    /// The parameter of a `constexpr_*` that it is bound to; none for the value itself.
    pub parameter: Option<String>,
    /// numpy's name of the element type; sub-byte types come in whole bytes.
    pub dtype: String,
    /// Dimensions.
    pub shape: Vec<usize>,
    /// Row-major little-endian elements.
    #[serde(skip)]
    pub bytes: Vec<u8>,
}

/// Has coremltools check `packages`, and gives the constants of each as it reads them.
///
/// # Panics
/// With what the check says if it finds a fault.
pub fn check_packages<P: AsRef<Path>>(packages: &[P]) -> Vec<Vec<Weight>> {
    let out = tempfile::tempdir().expect("a directory for weights");
    let mut args = vec![Path::new("--quiet"), Path::new("--weights"), out.path()];
    args.extend(packages.iter().map(AsRef::as_ref));
    run_tool("check_mlpackage.py", &args);
    let name = |package: &P| package.as_ref().file_stem().expect("a package has a name").to_owned();
    packages.iter().map(|package| read_weights(&out.path().join(name(package)))).collect()
}

fn read_weights(dir: &Path) -> Vec<Weight> {
    let index = fs::read(dir.join("index.json")).expect("an index of weights");
    let mut weights: Vec<Weight> = serde_json::from_slice(&index).expect("a list of weights");
    for weight in &mut weights {
        let suffix = weight.parameter.as_ref().map_or_else(String::new, |parameter| format!(".{parameter}"));
        let file = dir.join(&weight.function).join(format!("{}{suffix}.bin", weight.value));
        weight.bytes = fs::read(file).expect("a file for each weight of the index");
    }
    weights
}
