"""One server of the chat API: where it is, one attempt to ask it, and what that attempt means.

Knows nothing of the log, of budgets or of how often to try again. The body goes out byte for byte as it was given, so
what was keyed is what was sent; an answer that is to come bit by bit is asked for by two fields more. openai is
imported when the first server is really asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import ipaddress
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from buildsys.errors import BuildError
from buildsys.run.streamed import Assembly, Broken

if TYPE_CHECKING:
    import httpx2
    import openai

Meaning = Literal["reply", "refusal", "busy", "unreachable", "transient", "misconfigured"]
"""busy, unreachable: nothing wrong with the request, ask later. transient: this attempt went wrong. refusal: the server
will never answer this request. misconfigured: it will answer none of them."""

_REFUSED: Final = frozenset({400, 413, 422})
_BUSY: Final = frozenset({429, 503})
_TRANSIENT: Final = frozenset({408, 409, 425})
MOST_LEVELS: Final = 200
"""Of JSON within JSON. What is nested deeper no longer fits the stacks of all through whose hands it goes."""
_MAX_WORDS: Final = 300
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
# Whole pairs come first and an escaped backslash is one match, so that group 1 is nothing but lone halves.
_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
# A shorter one ("EMPTY", "x") is no secret, and would tear holes into what the server says.
_MIN_SECRET: Final = 8


@dataclass(frozen=True)
class Endpoint:
    """Where to ask, and who answers there. url: with or without `/v1`. identity: part of every key; url is not.

    key_name: the environment variable that the API key came from, for errors. gone: why nobody will ever answer there
    again, asked after an attempt without an answer; None where there is hope. others: URLs of servers that answer just
    so. in_flight: at most so many requests at each of them; 0 where that is for others to say. stream: replies are
    received bit by bit.
    """

    url: str
    identity: str
    api_key: str | None = field(default=None, repr=False)
    key_name: str = ""
    gone: Callable[[], BuildError | None] = field(default=lambda: None, repr=False, compare=False)
    others: tuple[str, ...] = ()
    in_flight: int = 0
    stream: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", _base_url(self.url))
        object.__setattr__(self, "others", tuple(_base_url(url) for url in self.others))

    def each(self) -> list[Endpoint]:
        """Its servers, each once and alone."""
        return [replace(self, url=url, others=()) for url in dict.fromkeys((self.url, *self.others))]


@dataclass(frozen=True)
class Heard:
    """What one attempt brought. status: 0 where there was no HTTP answer. words: for people, without the API key.

    content: the decoded body of a "reply". retry_after_s: how long the server asks to be left alone.
    """

    meaning: Meaning
    status: int
    body: bytes
    words: str
    content: Mapping[str, Any] = field(default_factory=dict)
    retry_after_s: float | None = None


class Server:
    """A connection pool to one endpoint. Made anywhere, used and closed in one event loop."""

    def __init__(self, endpoint: Endpoint, *, connect_timeout_s: float) -> None:
        try:
            import aiohttp  # noqa: F401  (without it the client below raises an error of its own)
            import httpx2
            import openai
        except ModuleNotFoundError as error:
            raise BuildError(
                "the client that asks chat servers is not installed",
                facts=[("missing", str(error.name))],
                hint="pip install 'buildsys[chat]'",
            ) from error
        self.endpoint = endpoint
        self._client = _client_kind()(
            base_url=endpoint.url,
            # The client insists on a key, and would take OPENAI_API_KEY, which is not meant for this server.
            api_key=endpoint.api_key or "none",
            max_retries=0,
            http_client=openai.DefaultAioHttpClient(
                timeout=httpx2.Timeout(None, connect=connect_timeout_s),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=None),
                trust_env=not _is_local(endpoint.url),
                # A redirect turns a POST into a GET, or leads where nobody meant to send prompts. Without it a plain
                # address needs no certificates, whose loading is 55 ms of CPU.
                follow_redirects=False,
                verify=endpoint.url.startswith("https:"),
            ),
        )
        self._options: Any = {"security": {"bearer_auth": True}}
        if not endpoint.api_key:
            self._options["headers"] = {"Authorization": openai.Omit()}

    async def ask(self, body: bytes, timeout_s: float, idle_s: float) -> Heard:
        """One attempt: POST these bytes. Raises nothing that the network or the server can cause.

        timeout_s: of the whole of it, or until the first bit of a stream comes; idle_s: from one bit to the next.
        """
        import aiohttp
        import httpx2
        import openai

        # The client tells no connection from a lost one (both are a "timeout"); only the error below it does.
        no_connection = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
        try:
            if self.endpoint.stream:
                with contextlib.suppress(openai.BadRequestError, openai.UnprocessableEntityError):
                    return await self._stream(body, timeout_s, idle_s)
                # It may be that it does not stream: only what it says of the request as it was keyed counts.
            async with asyncio.timeout(timeout_s):
                response = await self._client.post(
                    "/chat/completions", cast_to=httpx2.Response, content=body, options=self._options
                )
        except TimeoutError:
            what = f"for {idle_s:,.0f} s" if self.endpoint.stream else f"within {timeout_s:,.0f} s"
            return Heard("transient", 0, b"", f"no answer {what}")
        except openai.APIStatusError as error:
            response = error.response
        except (openai.APIConnectionError, aiohttp.ClientError, httpx2.HTTPError) as error:
            reason = _first_cause(error)
            meaning: Meaning = "unreachable" if isinstance(reason, no_connection) else "transient"
            return Heard(meaning, 0, b"", self._redact(f"no answer: {str(reason) or type(reason).__name__}"))
        return self._understand(response.status_code, response.content, response.headers)

    async def _stream(self, body: bytes, timeout_s: float, idle_s: float) -> Heard:
        """The same, bit by bit."""
        import openai

        loop = asyncio.get_running_loop()
        assembly, said = Assembly(), []
        async with asyncio.timeout(timeout_s) as deadline:
            stream = await self._client.post(
                "/chat/completions",
                cast_to=object,
                content=streaming(body),
                options=self._options,
                stream=True,
                stream_cls=openai.AsyncStream[object],
            )
            response = stream.response
            try:
                async for line in _lines(response.aiter_bytes()):
                    deadline.reschedule(loop.time() + idle_s)
                    said.append(line)
                    assembly.take(line)
            except Broken as error:
                return Heard("transient", 200, b"", self._redact(f"200, but its stream broke: {error}"))
            finally:
                await stream.close()
        if assembly.is_whole:
            return self._understand(200, assembly.completion(), response.headers)
        if any(line.startswith("data:") for line in said):
            return Heard("transient", 200, b"", "200, but its stream ended before the answer did")
        return self._understand(200, "\n".join(said).encode(), response.headers)  # It does not stream.

    async def close(self) -> None:
        await self._client.close()

    def _understand(self, status: int, body: bytes, headers: Mapping[str, str]) -> Heard:
        content = chat_content(body) if status == 200 else None
        if content is not None:
            return Heard("reply", status, body, "", content)
        said = self._redact(server_words(body))
        if status == 200:
            return Heard("transient", status, body, f"200, but not a chat completion: {said}")
        meaning = _meaning(status)
        if meaning == "refusal":
            body = self._redact(body.decode("utf-8", "replace")).encode()
        return Heard(meaning, status, body, f"{status}: {said}", retry_after_s=retry_after_s(headers))

    def _redact(self, text: str) -> str:
        key = self.endpoint.api_key or ""
        return text.replace(key, "[api key]") if len(key) >= _MIN_SECRET else text


@cache
def _client_kind() -> type[openai.AsyncOpenAI]:
    import httpx2
    import openai

    class Client(openai.AsyncOpenAI):
        """Builds its first request as ever, and all others as copies of it with another body: half the cost of one."""

        _first: httpx2.Request | None = None

        def _build_request(self, options: Any, *, retries_taken: int = 0) -> httpx2.Request:
            first = self._first
            if first is None or options.content is None:
                first = super()._build_request(options, retries_taken=retries_taken)
                del first.headers["content-length"]
                self._first = first
            return httpx2.Request(
                first.method, first.url, headers=first.headers, content=options.content, extensions={**first.extensions}
            )

    return Client


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """The lines of a stream. Other ends of lines, which readers of text know, are text here: JSON may hold them."""
    rest = b""
    async for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
    if rest:
        yield rest.decode("utf-8", "replace")


def streaming(body: bytes) -> bytes:
    """A request that asks for its answer bit by bit, with its usage at the end."""
    return json.dumps({**json.loads(body), "stream": True, "stream_options": {"include_usage": True}}).encode()


def chat_content(body: bytes) -> dict[str, Any] | None:
    """The decoded body of a whole chat completion; None where it is cut off, not JSON or without choices."""
    try:
        content = msgspec.json.decode(mended(body))
    except (msgspec.MsgspecError, RecursionError):
        return None
    if is_too_deep(content):
        return None
    choices = content.get("choices") if isinstance(content, dict) else None
    if not isinstance(choices, list) or not choices:
        return None
    whole = all(isinstance(choice, dict) and isinstance(choice.get("message"), dict) for choice in choices)
    return content if whole else None


def is_too_deep(value: object) -> bool:
    """Whether decoded JSON is nested more than MOST_LEVELS deep."""
    level: list[Any] = [[value]]
    for _ in range(MOST_LEVELS + 1):
        within = (part for one in level for part in (one.values() if isinstance(one, dict) else one))
        level = [part for part in within if isinstance(part, (dict, list))]
        if not level:
            return False
    return True


def mended(text: bytes) -> bytes:
    """JSON without escaped halves of surrogate pairs, as a character cut in two leaves them: each becomes U+FFFD.

    They are valid JSON, so they are no reason to refuse a reply, but readers of JSON, DuckDB among them, fail on them.
    """
    if not _SURROGATE.search(text):
        return text
    return _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[1] else escape[0], text)


def server_error(body: bytes) -> dict[str, Any]:
    """type, code and message of an error body, in the forms of OpenAI, vLLM and FastAPI; null where it has none."""
    try:
        content = json.loads(mended(body))
    except (ValueError, RecursionError):
        content = None
    inner = content.get("error", content) if isinstance(content, dict) else None
    told = inner if isinstance(inner, dict) else {"message": inner}
    message = told.get("message", told.get("detail"))
    if not isinstance(message, str):
        message = body.decode("utf-8", "replace").strip()
    return {"type": told.get("type"), "code": told.get("code"), "message": message}


def server_words(body: bytes) -> str:
    """What the server said, in one line for people."""
    words = " ".join(server_error(body)["message"].split())
    return words if len(words) <= _MAX_WORDS else words[:_MAX_WORDS] + " ..."


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to be left alone, from `retry-after-ms` or `retry-after` (seconds or a date)."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\s*\d{1,12}(\.\d*)?\s*", text) else None


def _meaning(status: int) -> Meaning:
    if status in _REFUSED:
        return "refusal"
    if status in _BUSY:
        return "busy"
    if status in _TRANSIENT or status >= 500:
        return "transient"
    return "misconfigured"


def _first_cause(error: BaseException) -> BaseException:
    """The aiohttp error at the bottom: the client's own text is only "Connection error."."""
    while isinstance(error.__cause__, Exception) and not type(error).__module__.startswith("aiohttp"):
        error = error.__cause__
    return error


def _base_url(url: str) -> str:
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise BuildError(
            "an endpoint is no http URL",
            facts=[("endpoint", url)],
            hint='write "http://HOST:PORT" or "https://HOST/v1"',
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BuildError(
            "an endpoint holds more than an address",
            facts=[("host", str(parts.hostname))],
            hint="leave out user, password and query; an API key is named under `secrets`",
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    if not re.search(r"/v\d", path):
        path += "/v1"
    return f"{parts.scheme}://{parts.netloc}{path}"


def _is_local(url: str) -> bool:
    """On this machine, where no proxy of the environment may come between."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
