"""Sets other people's programs on `lone serve`: schemathesis, Chromium, nginx, and a crowd of clients that misbehave.

usage: check_server.py LONE [DIRECTORY]      (what the checks need: see each; DIRECTORY gets the screenshots)
"""

import pathlib
import subprocess
import sys
import tempfile
import time

LONE = sys.argv[1]
HERE = pathlib.Path(__file__).resolve().parent


def check(name, *arguments):
    start = time.time()
    subprocess.run([sys.executable, HERE / name, *map(str, arguments)], check=True)
    print(f"{name}: as expected, {time.time() - start:.0f} s", flush=True)


def main(directory):
    command = [LONE, "serve", "--model", "demo", "--port", "0", "--log-level", "error", "--quiet"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().split()[-1]
        check("check_openapi.py", url, 10)
        check("check_page.py", url, directory)
        check("abuse_server.py", url.rsplit(":", 1)[1], server.pid, 1000)
    finally:
        server.terminate()
        server.wait()
    check("check_scale_out.py", LONE)


with tempfile.TemporaryDirectory() as temporary:
    main(sys.argv[2] if len(sys.argv) > 2 else temporary)
