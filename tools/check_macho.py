"""Checks that a Mach-O is what a Mac wants of lone: an arm64 program for macOS 15 that links Core ML and Foundation.

    python check_macho.py FILE

Reads the load commands itself. Exits with 1 and a line that says what was expected and what was found.
"""

import pathlib
import struct
import sys

from expectation import expect

MAGIC_64 = 0xFEEDFACF
ARM64 = 0x0100000C
EXECUTE = 2
LOAD_DYLIB = 0xC
LOAD_WEAK_DYLIB = 0x80000018
BUILD_VERSION = 0x32
PLATFORM_MACOS = 1

NEEDED = [
    "/System/Library/Frameworks/CoreML.framework/Versions/A/CoreML",
    "/System/Library/Frameworks/Foundation.framework/Versions/C/Foundation",
    "/usr/lib/libobjc.A.dylib",
    "/usr/lib/libSystem.B.dylib",
]


def main() -> None:
    (path,) = sys.argv[1:]
    data = pathlib.Path(path).read_bytes()
    magic, cpu, _, kind, count, _, _, _ = struct.unpack_from("<8I", data)
    expect("magic", hex(MAGIC_64), hex(magic))
    expect("processor", hex(ARM64), hex(cpu))
    expect("kind of file", EXECUTE, kind)

    libraries, version, at = [], None, 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        if command in (LOAD_DYLIB, LOAD_WEAK_DYLIB):
            (name,) = struct.unpack_from("<I", data, at + 8)
            libraries.append(data[at + name : at + size].split(b"\0")[0].decode())
        elif command == BUILD_VERSION:
            platform, least = struct.unpack_from("<2I", data, at + 8)
            expect("platform", PLATFORM_MACOS, platform)
            version = f"{least >> 16}.{least >> 8 & 0xFF}"
        at += size
    expect("least macOS", "15.0", version)
    for library in NEEDED:
        if library not in libraries:
            sys.exit(f"libraries: expected {library} among {', '.join(libraries)}")
    print(f"{path}: arm64, macOS {version} or newer, {len(libraries)} libraries")
    print("\n".join(f"  {library}" for library in libraries))


if __name__ == "__main__":
    main()
