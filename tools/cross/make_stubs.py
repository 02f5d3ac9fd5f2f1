"""Writes stubs of the macOS frameworks and libraries that lone links, so that a Mach-O can be linked without a Mac.

    python make_stubs.py DIR

A stub names a library and exports nothing: the linker is told to leave undefined symbols to the loader. The install names are those of macOS,
where a framework's library lies in a version directory.
"""

import pathlib
import sys

FRAMEWORKS = {
    "CoreFoundation": "A",
    "CoreGraphics": "A",
    "CoreML": "A",
    "CoreVideo": "A",
    "Foundation": "C",
    "IOKit": "A",
    "IOSurface": "A",
    "ImageIO": "A",
    "Metal": "A",
    "Security": "A",
}
LIBRARIES = {
    "libIOReport": "/usr/lib/libIOReport.dylib",
    "libiconv": "/usr/lib/libiconv.2.dylib",
    "libobjc": "/usr/lib/libobjc.A.dylib",
}

STUB = """--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: '{name}'
exports:
  - targets: [ arm64-macos ]
    symbols: [ ]
...
"""


def main() -> None:
    (root,) = map(pathlib.Path, sys.argv[1:])
    for framework, version in FRAMEWORKS.items():
        directory = root / "Frameworks" / f"{framework}.framework"
        directory.mkdir(parents=True, exist_ok=True)
        name = f"/System/Library/Frameworks/{framework}.framework/Versions/{version}/{framework}"
        (directory / f"{framework}.tbd").write_text(STUB.format(name=name))
    for library, name in LIBRARIES.items():
        (root / f"{library}.tbd").write_text(STUB.format(name=name))


if __name__ == "__main__":
    main()
