//! Packages that coremltools wrote.

use std::fs;
use std::path::{Path, PathBuf};

use lone_mil::package::{Package, PackageWriter};
use lone_testing::python;

use super::{agrees, packages_in};

/// Writes again, in `dir`, what was read from `source`.
fn copy(source: &Path, package: &Package, dir: &Path) -> PathBuf {
    let path = dir.join(source.file_name().unwrap());
    let writer = PackageWriter::create(&path).unwrap();
    if !package.blobs.blobs().is_empty() {
        fs::copy(package.blobs.path(), writer.weights_path()).unwrap();
    }
    writer.finish(&package.program, &package.metadata).unwrap();
    path
}

#[test]
fn packages_that_coremltools_wrote_are_read_and_survive_being_written_again() {
    let (made, again) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    python::run_tool("conformance/make_packages.py", &[made.path()]);
    let originals = packages_in(made.path());
    assert!(originals.len() >= 20);
    let packages: Vec<Package> = originals.iter().map(|path| Package::open(path).unwrap()).collect();
    let copies: Vec<PathBuf> =
        originals.iter().zip(&packages).map(|(path, package)| copy(path, package, again.path())).collect();

    let (before, after) = (python::check_packages(&originals), python::check_packages(&copies));
    for (i, package) in packages.iter().enumerate() {
        assert_eq!(Package::open(&copies[i]).unwrap().program, package.program);
        assert_eq!(before[i], after[i], "{}", originals[i].display());
        agrees(&originals[i], package, &before[i]);
    }
}

#[test]
fn sound_packages_that_are_not_static_programs_are_refused_by_what_they_have() {
    let made = tempfile::tempdir().unwrap();
    let kinds = ["branching", "flexible"].map(Path::new);
    python::run_tool("conformance/make_packages.py", &[&[made.path()][..], &kinds].concat());
    let refusal = |name: &str| Package::open(&made.path().join(name)).map(drop).unwrap_err().to_string();
    let branching = refusal("branching.mlpackage");
    assert!(branching.contains("cond `cond_0`: operation: expected one that is known here"), "{branching}");
    let flexible = refusal("flexible.mlpackage");
    assert!(
        flexible.ends_with("`x`: dimension 1: expected a fixed size, found a flexible one"),
        "{flexible}"
    );
}
