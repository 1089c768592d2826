"""The routes: requests become records for the writer, or questions to it, and its answers go back."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from kons.serve.description import OTHERS, openapi
from kons.serve.facts import facts_of, live_of
from kons.serve.fold import Fold
from kons.serve.guard import LINES, Guard, body_of, refusal
from kons.serve.log import Kind, Record
from kons.serve.metrics import Metrics
from kons.serve.page import live_page
from kons.serve.problems import Problem
from kons.serve.requests import decoded, item_of, record_of, row_of
from kons.serve.writer import Work, Writer

__all__ = ["Service"]

#: Seconds after which a word is sent to those who listen for events, so that both sides know.
HEARTBEAT = 15.0
LISTENERS = 100
#: Lines of a stream that are applied together at most, and items of a list that are read at once.
TOGETHER = 256
#: The beginning of the names of files that are only sent.
PASSING = ".sent."
JSON_HEADS = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))


class Service:
    """The ASGI application of one writer: :attr:`app`."""

    writer: Writer
    most_bytes: int

    def __init__(self, writer: Writer, *, most_bytes: int, guard: dict[str, Any]) -> None:
        self.writer, self.most_bytes = writer, most_bytes
        self.metrics: Metrics = Metrics(writer)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._noticed = asyncio.Event()
        self.listeners: int = 0
        self.ending = False
        writer.events_told = self._wake
        kinds: tuple[Kind, ...] = ("predict", "label", "learn")
        self._records = {f"/v1/{kind}": _Records(self, kind) for kind in kinds}
        routes = [Route(path, records, methods=["POST"]) for path, records in self._records.items()]
        others: dict[str, Any] = {
            "/v1/model": self._model,
            "/v1/model.kons": self._model_file,
            "/v1/snapshot": self._snapshot,
            "/v1/explain": self._explain,
            "/v1/metrics.json": self._live,
            "/v1/events": _Events(self),
            "/v1/openapi.json": self._openapi,
            "/metrics": self._prometheus,
            "/healthz": self._health,
            "/readyz": self._ready,
            "/": self._page,
        }
        routes += [Route(path, others[path], methods=[OTHERS[path][0].upper()]) for path in OTHERS]
        problems: dict[Any, Any] = {Problem: _problem, HTTPException: _http_problem}
        self._others = Starlette(routes=routes, exception_handlers=problems)
        self.app: Guard = Guard(self._routed, **guard)

    async def _routed(self, scope: Any, receive: Any, send: Any) -> None:
        # Records, of which hundreds come a second, past the routes and layers of the framework.
        records = self._records.get(scope["path"]) if scope["method"] == "POST" else None
        await (records or self._others)(scope, receive, send)

    # ---- the writer

    async def work(self, records: list[Record | Problem]) -> list[Any]:
        """The answers to some records, in order."""
        return await self._answered(lambda done: Work(done, records))

    async def ask(self, question: Callable[[Fold], Any]) -> Any:
        """What a question about the model, as it is between two records, comes to."""
        return _raised((await self._answered(lambda done: Work(done, question=question)))[0])

    async def _answered(self, make: Callable[[Callable[[list[Any]], object]], Work]) -> list[Any]:
        loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()

        def done(answers: list[Any]) -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_settle, future, answers)

        self.writer.submit(make(done))
        return await future

    def _wake(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self.wake)

    def wake(self) -> None:
        """Whoever listens looks again."""
        self._noticed.set()
        self._noticed = asyncio.Event()

    async def events_after(self, number: int) -> AsyncIterator[bytes]:
        """Server-sent events behind a number, as they come; a comment now and then."""
        while not self.ending:
            changed = self._noticed
            for at, event in tuple(self.writer.fold.events) if self.writer.state == "ready" else ():
                if number < at <= self.writer.told:
                    number = at
                    yield b"id: %d\nevent: notice\ndata: %s\n\n" % (at, msgspec.json.encode(event))
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), HEARTBEAT)
                continue
            yield b": here\n\n"

    # ---- routes

    async def _model(self, _: Request) -> Response:
        folder = self.writer.folder
        return _json(await self.ask(lambda fold: facts_of(fold, folder)))

    async def _model_file(self, _: Request) -> Response:
        folder = self.writer.folder
        heads = {"Content-Disposition": 'attachment; filename="model.kons"'}
        if folder.settings.key is None:
            data = await self.ask(folder.model)
            return Response(data, media_type="application/octet-stream", headers=heads)
        place = folder.path / f"{PASSING}{secrets.token_hex(6)}.kons"
        await self.ask(partial(folder.save_model, path=place))
        # It is gone from the folder at once, and from the disk when it was sent.
        file = place.open("rb")
        place.unlink()
        return StreamingResponse(_parts(file), media_type="application/octet-stream", headers=heads)

    async def _snapshot(self, request: Request) -> Response:
        await self._body(request)
        return _json(_raised((await self._answered(self.writer.take_snapshot))[0]))

    async def _explain(self, request: Request) -> Response:
        item = decoded(await self._body(request))
        if not isinstance(item, dict) or item.keys() - {"x", "label", "similar"} or "x" not in item:
            raise Problem(422, "expected an object with x, and perhaps label and similar.")
        x, label, similar = row_of(item["x"]), item.get("label"), item.get("similar", 5)
        if type(similar) is not int or not 0 <= similar <= 100 or isinstance(label, (dict, list)):
            raise Problem(422, "similar is a whole number from 0 to 100, label one of the labels.")
        return _json(await self.ask(lambda fold: fold.explain(x, label, similar)))

    async def _live(self, _: Request) -> Response:
        if self.writer.state != "ready":
            return _json({"state": self.writer.state, "replayed": self.writer.replayed})
        return _json(await self.ask(partial(live_of, writer=self.writer)))

    async def _prometheus(self, _: Request) -> Response:
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def _health(self, _: Request) -> Response:
        if self.writer.failure is not None:
            raise Problem(503, "the writer has failed.")
        return _json({"status": "alive"})

    async def _ready(self, _: Request) -> Response:
        if self.writer.state != "ready":
            raise Problem(503, f"{self.writer.state}: {self.writer.replayed:,} records replayed.")
        return _json({"status": "ready"})

    async def _openapi(self, _: Request) -> Response:
        return _json(openapi())

    async def _page(self, _: Request) -> Response:
        text, policy = live_page()
        heads = {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-cache",
        }
        return Response(text, media_type="text/html", headers=heads)

    async def _body(self, request: Request) -> bytes:
        return await body_of(request.receive, self.most_bytes)


class _Records:
    """One of the routes that take records: one, a list, or a stream of lines."""

    def __init__(self, service: Service, kind: Kind) -> None:
        self._service, self._kind = service, kind

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        began = time.perf_counter()
        try:
            if (b"content-type", LINES.encode()) in _kinds(scope):
                await self._stream(receive, send)
                return
            item = decoded(await body_of(receive, self._service.most_bytes))
            if isinstance(item, list):
                told = [item_of(one) for one in await self._answers(item)]
            else:
                told = _raised((await self._service.work([record_of(self._kind, item)]))[0])
            self._answered(200, began)
            await _send(send, msgspec.json.encode(told))
        except Problem as problem:
            self._answered(problem.status, began)
            await refusal(problem)(scope, receive, send)

    def _answered(self, status: int, began: float) -> None:
        self._service.metrics.answered(self._kind, status, time.perf_counter() - began)

    async def _answers(self, items: list[Any]) -> list[Any]:
        records: list[Record | Problem] = []
        for first in range(0, len(items), TOGETHER):
            records += [record_of(self._kind, item) for item in items[first : first + TOGETHER]]
            await asyncio.sleep(0)  # others come in between
        return await self._service.work(records) if records else []

    async def _stream(self, receive: Any, send: Any) -> None:
        """A line for every line, in order, as long as lines come."""
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-type", LINES.encode())]}
        )
        left, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            more = message.get("more_body", False)
            *lines, left = (left + message.get("body", b"")).split(b"\n")
            if not more and left.strip():
                lines.append(left)
            if len(left) > self._service.most_bytes:
                lines, more = [*lines, left], False  # refused as too long
            for first in range(0, len(lines), TOGETHER):
                told = await self._of_lines(
                    [line for line in lines[first : first + TOGETHER] if line.strip()]
                )
                await send({"type": "http.response.body", "body": told, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _of_lines(self, lines: list[bytes]) -> bytes:
        records = [self._of_line(line) for line in lines]
        while records:
            try:
                answers = await self._service.work(records)
                break
            except Problem as problem:
                if problem.status != 429:
                    answers = [problem] * len(records)
                    break
                await asyncio.sleep(0.02)  # a stream waits for its turn: nothing more is read of it
        return (
            b"".join(msgspec.json.encode(item_of(answer)) + b"\n" for answer in answers) if records else b""
        )

    def _of_line(self, line: bytes) -> Record | Problem:
        if len(line) > self._service.most_bytes:
            return Problem(413, f"a line has more than {self._service.most_bytes:,} bytes (--max-body).")
        try:
            return record_of(self._kind, decoded(line))
        except Problem as problem:
            return problem


class _Events:
    """The route of those who listen; one who does not take what is sent is dropped."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        service = self._service
        if service.listeners >= LISTENERS:
            await refusal(Problem(503, f"{LISTENERS} listen already."))(scope, receive, send)
            return
        last = next((value for name, value in scope["headers"] if name.lower() == b"last-event-id"), b"")
        number = int(last) if last.isdigit() and len(last) < 19 else 0
        if number > service.writer.told:
            number = 0  # of another service, which was here before
        service.listeners += 1
        told = asyncio.ensure_future(self._tell(number, send))
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait((told, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            service.listeners -= 1
            for task in (told, gone):
                task.cancel()
                with suppress(asyncio.CancelledError, Problem):
                    await task

    async def _tell(self, number: int, send: Any) -> None:
        heads = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": 200, "headers": heads})
        async for message in self._service.events_after(number):
            await send({"type": "http.response.body", "body": message, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _parts(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while part := await asyncio.to_thread(file.read, 1 << 20):
            yield part


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _kinds(scope: Any) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value.partition(b";")[0].strip().lower()) for name, value in scope["headers"]]


def _settle(future: asyncio.Future[list[Any]], answers: list[Any]) -> None:
    if not future.done():  # its client may have gone
        future.set_result(answers)


def _raised(answer: Any) -> Any:
    if isinstance(answer, Problem):
        raise answer
    return answer


async def _send(send: Any, body: bytes) -> None:
    """An answer that is JSON, by a tenth of what a ``Response`` takes."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": 200, "headers": [*JSON_HEADS, length]})
    await send({"type": "http.response.body", "body": body})


def _json(value: Any) -> Response:
    # Infinity and NaN become null.
    return Response(
        msgspec.json.encode(value), media_type="application/json", headers={"Cache-Control": "no-store"}
    )


async def _problem(_: Request, problem: Exception) -> Response:
    assert isinstance(problem, Problem)
    return refusal(problem)


async def _http_problem(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 400)
    method, path = request.method[:20], request.url.path[:100]
    detail = f"there is no {path!r}." if status == 404 else f"{path!r} is not for {method!r}."
    return refusal(Problem(status, f"{detail} See /v1/openapi.json."))
