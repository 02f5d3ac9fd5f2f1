"""Checks that a wheel holds what it should: its tag, the `lone` program for that system, manual pages and completions.

    python check_wheel.py WHEEL TAG

TAG is the platform's, such as macosx_15_0_arm64. Exits with 1 and a line that says what was expected and what was found.
"""

import base64
import csv
import hashlib
import pathlib
import sys
import zipfile

from expectation import expect

MAGIC = {"macosx": bytes.fromhex("cffaedfe"), "linux": b"\x7fELF", "manylinux": b"\x7fELF"}
SHARED = [
    "share/man/man1/lone.1",
    "share/man/man1/lone-run.1",
    "share/bash-completion/completions/lone",
    "share/zsh/site-functions/_lone",
    "share/fish/vendor_completions.d/lone.fish",
]


def check_record(wheel: zipfile.ZipFile, record: str) -> None:
    """Every file is listed with its hash."""
    rows = list(csv.reader(wheel.read(record).decode().splitlines()))
    expect("files in RECORD", sorted(wheel.namelist()), sorted(row[0] for row in rows))
    for name, listed, _ in rows:
        if name != record:
            digest = hashlib.sha256(wheel.read(name)).digest()
            expect(name, listed, "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode())


def main() -> None:
    path, tag = sys.argv[1:]
    with zipfile.ZipFile(path) as wheel:
        names = [name for name in wheel.namelist() if not name.endswith("/")]
        (info,) = {name.split("/")[0] for name in names if ".dist-info/" in name}
        stem = info.removesuffix(".dist-info")
        expect("name", f"{stem}-py3-none-{tag}.whl", pathlib.Path(path).name)
        facts = wheel.read(f"{info}/WHEEL").decode().splitlines()
        expect("tag", [f"Tag: py3-none-{tag}"], [line for line in facts if line.startswith("Tag:")])
        metadata = wheel.read(f"{info}/METADATA").decode()
        for line in ["Name: lone-ane", "License-Expression: MIT OR Apache-2.0", "License-File: LICENSE-MIT"]:
            expect("metadata", True, line in metadata.splitlines() or line)
        program = f"{stem}.data/scripts/lone"
        expect("program", True, program in names)
        with wheel.open(program) as file:
            expect("kind of program", MAGIC[tag.split("_")[0]].hex(), file.read(4).hex())
        expect("mode of the program", True, bool(wheel.getinfo(program).external_attr >> 16 & 0o111))
        for name in SHARED:
            expect(name, True, f"{stem}.data/data/{name}" in names)
        check_record(wheel, f"{info}/RECORD")
    print(f"{path}: {len(names)} files, {pathlib.Path(path).stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
