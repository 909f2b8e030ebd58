"""A server of the chat API on loopback that counts what it is asked and goes wrong on demand.

It speaks HTTP by hand: half of what it is for (resets, half bodies, wrong lengths) is what HTTP servers prevent.
A plan says for each request, by its number and the times that its prompt was asked, what to do.
"""

import asyncio
import json
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What goes over the wire. content_length: what the header claims, None for the truth. reset: RST, no answer.

    events: instead of a body, what a stream holds, one every `pause_s`; the connection ends with the last.
    """

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    content_length: int | None = None
    delay_s: float = 0.0
    reset: bool = False
    events: tuple[bytes, ...] = ()
    pause_s: float = 0.0


GOOD = Answer()


@dataclass(frozen=True)
class Asked:
    """One request as the server saw it. tries: how often this body was asked before. answered: 200, and sent whole."""

    number: int
    prompt: str
    body: Json
    raw: bytes
    headers: dict[str, str]
    at: float
    tries: int


Plan = Callable[[Asked], Answer]


def completion(asked: Asked) -> bytes:
    """The reply that a prompt gets: the same for the same body, in the shape and white space of a real server."""
    text = f"answer to {asked.prompt}"
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": asked.body["model"],
        "system_fingerprint": "fp-test",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "reasoning": f"thinking of {asked.prompt} …"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10},
    }
    return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def events(asked: Asked, n_parts: int = 4) -> tuple[bytes, ...]:
    """The same reply in the events of a stream, as vLLM sends it."""
    whole = json.loads(completion(asked))
    message = whole["choices"][0]["message"]
    head = {name: whole[name] for name in ("id", "model", "system_fingerprint")} | {"object": "chat.completion.chunk"}
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    for name in ("reasoning", "content"):
        size = -(-len(message[name]) // n_parts)
        deltas += [{name: message[name][at : at + size]} for at in range(0, len(message[name]), size)]
    chunks: list[Json] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None, "token_ids": [n]}]}
        for n, delta in enumerate(deltas)
    ]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": 7}]})
    chunks.append({**head, "choices": [], "usage": whole["usage"]})
    return (*(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n")


def error_body(message: str) -> bytes:
    return json.dumps({"error": {"message": message, "type": "test_error", "code": None}}).encode()


class ChatServer:
    """Runs in a thread of its own, in the `with` block. All views are complete once the client has its answers.

    answered: how often each prompt got a 200. said: every request with what was sent, in that order.

    on: a bound socket, where not any free port will do.
    """

    def __init__(self, plan: Plan = lambda asked: GOOD, on: socket.socket | None = None) -> None:
        self.plan = plan
        self.asked: list[Asked] = []
        self.answered: Counter[str] = Counter()
        self.said: list[tuple[Asked, Answer]] = []
        self.max_in_flight = 0
        self._in_flight = 0
        self._tries: Counter[bytes] = Counter()
        self._socket = on or socket.create_server(("127.0.0.1", 0))
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    @property
    def prompts(self) -> list[str]:
        return [asked.prompt for asked in self.asked]

    def forget(self) -> None:
        """As if nothing had been asked yet."""
        for view in (self.asked, self.said, self.answered, self._tries):
            view.clear()

    def __enter__(self) -> "ChatServer":
        self._socket.listen(1024)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._main())
        self._loop.close()

    async def _main(self) -> None:
        server = await asyncio.start_server(self._connection, sock=self._socket)
        await self._stop.wait()
        server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")) and await self._exchange(head, reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False where the connection is used up."""
        first, *lines = head.decode("latin-1").strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        if not first.startswith("POST /v1/chat/completions "):
            return await self._write(writer, Answer(404, error_body(f"no such route: {first}")))
        asked = self._note(raw, headers)
        answer = self.plan(asked)
        self._in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self._in_flight)
        try:
            await asyncio.sleep(answer.delay_s)
            if answer.events:
                return await self._stream(writer, answer, asked)
        finally:
            self._in_flight -= 1
        body = completion(asked) if answer.body is None else answer.body
        if answer.status == 200 and answer.content_length is None and not answer.reset:
            self.answered[asked.prompt] += 1
        sent = Answer(answer.status, body, answer.headers, answer.content_length, reset=answer.reset)
        self.said.append((asked, sent))
        return await self._write(writer, sent)

    async def _stream(self, writer: asyncio.StreamWriter, answer: Answer, asked: Asked) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for event in answer.events:
            writer.write(event)
            await writer.drain()
            await asyncio.sleep(answer.pause_s)
        self.answered[asked.prompt] += answer.events[-1] == b"data: [DONE]\n\n"
        return False

    def _note(self, raw: bytes, headers: dict[str, str]) -> Asked:
        body = json.loads(raw)
        prompt = body["messages"][-1]["content"]
        asked = Asked(len(self.asked), prompt, body, raw, headers, time.monotonic(), self._tries[raw])
        self._tries[raw] += 1
        self.asked.append(asked)
        return asked

    async def _write(self, writer: asyncio.StreamWriter, answer: Answer) -> bool:
        if answer.reset:
            # With a linger time of zero, close sends RST.
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        body = answer.body or b""
        length = len(body) if answer.content_length is None else answer.content_length
        lines = [f"HTTP/1.1 {answer.status} Said", f"content-length: {length}", "content-type: application/json"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        return answer.content_length is None


if __name__ == "__main__":
    # For measuring: the server's CPU time must not be the client's.
    delay_s = float(sys.argv[1])
    with ChatServer(lambda asked: Answer(delay_s=delay_s)) as server:
        print(server.url, flush=True)
        sys.stdin.read()
