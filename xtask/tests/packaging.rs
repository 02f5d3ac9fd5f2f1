//! What the scripts under `packaging/` say where they cannot go on.

use std::path::Path;
use std::process::Command;

#[test]
fn a_wheel_without_the_python_it_is_to_be_made_with_says_so() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging/wheel");
    let place = tempfile::tempdir().unwrap();
    let wheels = place.path().join("wheels");
    let output = Command::new(script)
        .arg(std::env::current_exe().unwrap())
        .arg(&wheels)
        .env("LONE_PYTHON", "/nowhere/python")
        .output()
        .unwrap();
    let expected =
        "packaging/wheel: no program /nowhere/python; LONE_PYTHON must name a Python with maturin\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    assert_eq!((output.status.code(), wheels.exists()), (Some(1), false));
}
