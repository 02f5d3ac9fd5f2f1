"""Has schemathesis make requests of a running server's own description of itself, and of what that forbids.

usage: check_openapi.py URL [EXAMPLES]      (schemathesis from PyPI; EXAMPLES: 25 requests an address unless given)

No request may be a fault of the server's, and every answer must be of a status, a type and a shape that the description has.
"""

import pathlib
import subprocess
import sys
import tempfile

URL = sys.argv[1].rstrip("/")
EXAMPLES = sys.argv[2] if len(sys.argv) > 2 else "25"
CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")

st = pathlib.Path(sys.executable).parent / "st"
with tempfile.TemporaryDirectory() as directory:
    command = [st, "run", f"{URL}/openapi.json", "--checks", ",".join(CHECKS), "--phases", "coverage,fuzzing",
               "--max-examples", EXAMPLES, "--seed", "1", "--request-timeout", "60",
               "--suppress-health-check", "all", "--warnings", "off", "--no-color"]
    sys.exit(subprocess.run(command, cwd=directory).returncode)
