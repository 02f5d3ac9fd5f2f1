"""Runs docs/scale-out.md's nginx in front of two servers and takes them away under load.

usage: check_scale_out.py LONE      (LONE is the program; nginx must be on the PATH)
"""

import concurrent.futures
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

LONE = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parent.parent
CAPITALS = {"France": "Paris", "Austria": "Vienna", "Italy": "Rome", "Japan": "Tokyo"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start_replica(port):
    command = [LONE, "serve", "--model", "demo", "--port", str(port), "--log-level", "error", "--quiet", "--threads", "1"]
    replica = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for(f"http://127.0.0.1:{port}/health")
    return replica


def wait_for(url):
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=5).read()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url} never answered")


def start_nginx(directory, port, replicas):
    documented = re.search(r"```nginx\n(.*?)```", (ROOT / "docs/scale-out.md").read_text(), re.S)[1]
    for i, replica in enumerate(replicas, 1):
        documented = documented.replace(f"10.0.0.{i}:8082", f"127.0.0.1:{replica}")
    documented = documented.replace("listen 80;", f"listen 127.0.0.1:{port};")
    temporary = "".join(f"{kind}_temp_path {directory}/{kind};" for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = directory / "nginx.conf"
    config.write_text(f"daemon off; pid {directory}/pid; error_log {directory}/error.log;"
                      f"events {{}} http {{ access_log off; {temporary}\n{documented}}}")
    nginx = subprocess.Popen(["nginx", "-c", str(config), "-p", str(directory), "-e", str(directory / "error.log")])
    wait_for(f"http://127.0.0.1:{port}/health")
    return nginx


class Load:
    """Asks for capitals, each session its own, until stopped."""

    def __init__(self, port, sessions):
        self.url = f"http://127.0.0.1:{port}/v1/chat/completions"
        self.right = self.failed = 0
        self.lock = threading.Lock()
        self.running = True
        self.pool = concurrent.futures.ThreadPoolExecutor(sessions)
        self.futures = [self.pool.submit(self.session, i) for i in range(sessions)]

    def session(self, number):
        country, capital = list(CAPITALS.items())[number % len(CAPITALS)]
        body = {"messages": [{"role": "user", "content": f"What is the capital of {country}?"}]}
        while self.running:
            ok = ask(self.url, body, number, f"The capital of {country} is {capital}.")
            with self.lock:
                self.right += ok
                self.failed += not ok

    def stop(self):
        self.running = False
        for future in self.futures:
            future.result()


def ask(url, body, session, expected):
    """Whether the answer came; a wrong one is the end of the test."""
    headers = {"Content-Type": "application/json", "X-Session-Id": f"session-{session}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        answer = json.load(urllib.request.urlopen(request, timeout=60))
    except urllib.error.HTTPError as error:
        assert error.code == 502, f"status {error.code}: {error.read()}"
        return False
    content = answer["choices"][0]["message"]["content"]
    assert content == expected, f"{content!r} instead of {expected!r}"
    return True


def under_load(port, what):
    load = Load(port, 8)
    time.sleep(3)
    what()
    time.sleep(5)
    load.stop()
    return load


def main():
    proxy, ports = free_port(), [free_port(), free_port()]
    replicas = [start_replica(port) for port in ports]
    with tempfile.TemporaryDirectory() as directory:
        nginx = start_nginx(pathlib.Path(directory), proxy, ports)
        try:
            load = under_load(proxy, lambda: replicas[0].send_signal(signal.SIGTERM))
            assert replicas[0].wait(60) == 0, "the server did not end tidily"
            print(f"taken out by SIGTERM: {load.right} right answers, {load.failed} failed")
            assert load.failed == 0 and load.right > 20
            replicas[0] = start_replica(ports[0])
            time.sleep(6)
            load = under_load(proxy, replicas[0].kill)
            print(f"killed: {load.right} right answers, {load.failed} failed")
            # Each of the eight sessions has one request in flight, and half of them are at the other server.
            assert load.failed <= 8 and load.right > 20
        finally:
            for process in [nginx, *replicas]:
                process.terminate()
                process.wait()


main()
