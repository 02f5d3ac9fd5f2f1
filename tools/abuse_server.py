"""Mistreats a running `lone serve --model demo`, and checks that it is none the worse for it.

usage: abuse_server.py PORT PID [REQUESTS]      (REQUESTS: 10000 unless given)

First all of it is done with few requests, until memory stops growing, since a server keeps what it needs for a thousand
connections and for the chats it has read. Then it is done with all of them, up to three times: once it must hold no more.
"""

import asyncio
import json
import random
import socket
import sys
import time

PORT, PID = int(sys.argv[1]), int(sys.argv[2])
REQUESTS = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
QUESTION = {"messages": [{"role": "user", "content": "What is the capital of France?"}]}
PARIS = "The capital of France is Paris."
chance = random.Random(1)


def resident_bytes():
    for line in open(f"/proc/{PID}/status"):
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024


def head(length, path="/v1/chat/completions", kind="application/json"):
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {length}\r\nConnection: close\r\n\r\n").encode()


async def send(body, path="/v1/chat/completions"):
    """The status and body of the answer to one request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    try:
        writer.write(head(len(body), path) + body)
        answer = await reader.read()
    finally:
        writer.close()
    first, _, rest = answer.partition(b"\r\n\r\n")
    return int(first.split(b" ", 2)[1]), rest


async def right_answer():
    while True:
        status, body = await send(json.dumps(QUESTION).encode())
        if status == 429:
            await asyncio.sleep(0.1)
            continue
        assert status == 200, (status, body)
        content = json.loads(body)["choices"][0]["message"]["content"]
        assert content == PARIS, content
        return


async def many_connections():
    opened = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", PORT) for _ in range(1000)))
    for _, writer in opened:
        writer.close()
    await right_answer()


async def slow_readers():
    body = json.dumps({**QUESTION, "stream": True, "max_tokens": 300, "logit_bias": {"7": -100, "2": -100}}).encode()
    writers = []
    for _ in range(20):
        # A buffer so small that the server cannot get rid of what it has to say.
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.connect(("127.0.0.1", PORT))
        _, writer = await asyncio.open_connection(sock=connection, limit=1)
        writer.write(head(len(body)) + body)
        writers.append(writer)
    await right_answer()
    for writer in writers:
        writer.transport.abort()


async def slow_writers():
    writers = []
    for _ in range(50):
        _, writer = await asyncio.open_connection("127.0.0.1", PORT)
        writer.write(head(500)[: chance.randrange(5, 120)])
        writers.append(writer)
    await right_answer()
    for writer in writers:
        writer.transport.abort()


async def half_closed():
    body = json.dumps(QUESTION).encode()
    for _ in range(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        writer.write(head(len(body)) + body)
        writer.write_eof()
        await reader.read()
        writer.close()
    await right_answer()


async def nonsense():
    large = 100_000_000
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    writer.write(head(large))
    assert b" 413 " in await reader.readline()
    writer.close()
    for body in (b"", b"{", b"\xff\xfe", b'{"messages": "\xc3\x28"}', b"[" * 100_000, b'{"messages": ' + b"[" * 1000):
        status, _ = await send(body)
        assert status == 400, (status, body[:20])
    for line in (b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET " + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        writer.write(line)
        await reader.read()
        writer.close()
    await right_answer()


async def mixed(count):
    """Requests, of which some are left at a random moment."""
    limit = asyncio.Semaphore(30)

    async def one():
        async with limit:
            if chance.random() < 0.5:
                return await right_answer()
            body = json.dumps({**QUESTION, "stream": chance.random() < 0.5, "max_tokens": 40,
                               "temperature": 1.5, "n": chance.choice([1, 1, 3])}).encode()
            reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
            writer.write(head(len(body)) + body)
            await asyncio.sleep(chance.random() * 0.05)
            writer.transport.abort()

    await asyncio.gather(*(one() for _ in range(count)))


async def abuse(requests):
    start = time.time()
    for kind in (many_connections, slow_readers, slow_writers, half_closed, nonsense):
        await kind()
    await mixed(requests)
    await idle()
    held = resident_bytes()
    print(f"{requests} requests and the rest: {time.time() - start:.1f} s, {held / 1e6:.1f} MB of anonymous memory", flush=True)
    return held


async def idle():
    """Until nobody is answered any more, and no one waits."""
    for _ in range(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        metrics = (await reader.read()).decode()
        writer.close()
        if "lone_requests_active 0\n" in metrics and "lone_queue_waiting 0\n" in metrics:
            return
        await asyncio.sleep(0.5)
    raise AssertionError(f"a slot is stuck:\n{metrics}")


async def steady():
    """The most memory held, once three rounds of abuse have not raised it by a hundredth, or after twenty rounds."""
    most, since = 0, 0
    for _ in range(20):
        held = await abuse(REQUESTS // 20)
        since = 0 if held > 1.01 * most else since + 1
        most = max(most, held)
        if since == 3:
            break
    return most


async def main():
    await right_answer()
    allowed = 1.05 * await steady()
    # What the allocator keeps goes up and down by a few megabytes; what leaks only goes up.
    for _ in range(3):
        if await abuse(REQUESTS) <= allowed:
            break
    else:
        raise AssertionError("memory has grown by more than 5 %")
    await right_answer()


asyncio.run(main())
