"""A service from its start to its end: the folder, the writer, the socket, and signals."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn

from kons.errors import ConfigurationError, KonsError
from kons.runs.circumstances import using_threads
from kons.serve.app import Service
from kons.serve.brokers import Source, source_of, taking
from kons.serve.folder import ServiceFolder
from kons.serve.guard import is_loopback
from kons.serve.protocol import quick_protocol
from kons.serve.writer import Writer

__all__ = ["bind", "replay", "require_safe", "serve", "source_of"]

#: Connections at a time, and seconds that those have which are open at the end.
CONNECTIONS, GRACE = 1000, 10


class _Server(uvicorn.Server):
    """Told to stop by :attr:`should_exit` alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(
    folder: ServiceFolder,
    listening: socket.socket,
    *,
    token: str | None = None,
    read_token: str | None = None,
    names: tuple[str, ...] = (),
    most_bytes: int = 1 << 20,
    listens: Callable[[], object] = lambda: None,
    source: Source | None = None,
    **writing: Any,
) -> None:
    """Serve until SIGTERM or SIGINT: then answer what waits, take a snapshot, and return."""
    with using_threads(1):  # of the BLAS, for the whole process: bits depend on it
        writer = Writer(folder, ended=lambda: _end(), **writing)
        guard = {"token": token, "read_token": read_token, "names": names}
        service = Service(writer, most_bytes=most_bytes, guard=guard)
        config = uvicorn.Config(
            service.app,
            http=quick_protocol() or "h11",
            lifespan="off",
            ws="none",
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=GRACE,
        )
        server = _Server(config)

        def _end() -> None:
            server.should_exit = True

        def stop(*_: Any) -> None:
            service.ending = server.should_exit = True
            service.wake()

        async def whole() -> None:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, stop)
            async with contextlib.nullcontext() if source is None else taking(source, service):
                listens()
                await server.serve(sockets=[listening])

        writer.start()
        try:
            with asyncio.Runner(loop_factory=_quick_loop()) as runner:
                runner.run(whole())
        finally:
            writer.stop()
    if writer.failure is not None:
        if isinstance(writer.failure, KonsError):
            raise writer.failure
        raise KonsError(
            f"the service stopped: {type(writer.failure).__name__}: {writer.failure}"
        ) from writer.failure


def _quick_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """That of uvloop, where it is installed."""
    try:
        import uvloop
    except ImportError:  # Windows, or a Python that it is not built for
        return None
    loop: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return loop


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0: one that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only on sockets that say they are TCP: 40 ms each.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except (OSError, OverflowError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"--host {host} --port {port}: {why}. Is another service there?") from error
    return listening


def require_safe(host: str, token: str | None) -> None:
    """Refuse an address that others can reach, where anybody could teach the model."""
    if token is None and not is_loopback(host):
        raise ConfigurationError(
            f"--host {host}: others can reach it; which token do they need (--token-file, KONS_TOKEN)?"
        )


def replay(path: Path, out: Path) -> None:
    """Write the model that the log of a service comes to: its records learned one by one."""
    folder = ServiceFolder.open(path)
    try:
        with using_threads(1):
            fold, _ = folder.fold(from_start=folder.first == 0)
            try:
                folder.save_model(fold, out)
            finally:
                fold.close()
    finally:
        folder.release()
