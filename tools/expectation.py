"""What checks of files say when something is not as it should be."""

import sys


def expect(what: str, expected: object, found: object) -> None:
    """Ends the program with a line that says what was expected and what was found, unless they are the same."""
    if expected != found:
        sys.exit(f"{what}: expected {expected}, found {found}")
