"""``kons serve`` and ``kons replay``: a model that learns while it is asked, and what its log comes to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from kons.cli.files import find_model, require_place
from kons.errors import ConfigurationError, MissingExtraError, announce, as_word
from kons.recipes.registry import recipe_of

__all__ = ["replayed", "start"]


def start(
    path: Path,
    model: Path | None,
    asked: dict[str, Any],
    *,
    host: str,
    port: int,
    token_file: Path | None,
    read_token_file: Path | None,
    names: list[str] | None,
    queue: int,
    body: int,
    snapshot_every: int,
    keep_log: bool,
    source: str | None,
    quiet: bool,
) -> int:
    """Serve until a signal; 0 after SIGTERM."""
    _require_extra()
    from kons.serve.server import bind, require_safe, serve, source_of

    token, read_token = _token(token_file, "KONS_TOKEN"), _token(read_token_file, "KONS_READ_TOKEN")
    if read_token is not None and token is None:
        raise ConfigurationError(
            "--read-token-file: a token for reading only needs one for the rest, --token-file."
        )
    require_safe(host, token)
    messages = None if source is None else source_of(source)
    listening = bind(host, port)
    try:
        folder = _folder(path, model, asked)
        chosen = listening.getsockname()[1]
        shown = f"[{host}]" if ":" in host else host

        def tell(what: str) -> None:
            print(f"kons serve: {what}", flush=True)  # programs read it, too

        serve(
            folder,
            listening,
            token=token,
            read_token=read_token,
            names=tuple(names or ()),
            most_bytes=body,
            listens=lambda: tell(f"http://{shown}:{chosen}/ serves {as_word(path)}"),
            ready=lambda records: tell(f"ready, {records:,} records so far"),
            most_waiting=queue,
            snapshot_every=snapshot_every,
            keep_log=keep_log,
            source=messages,
        )
    finally:
        listening.close()
    if folder.torn and not quiet:
        announce(f"{folder.torn:,} bytes of a group that was not answered were cut off the log.")
    if not quiet:
        print(f"kons serve: stopped; kons serve --dir {as_word(path)} goes on.", file=sys.stderr)
    return 0


def replayed(path: Path, out: Path, *, force: bool) -> int:
    """Write the model that the log comes to."""
    _require_extra()
    from kons.serve.server import replay

    require_place("--out", out, force=force)
    replay(path, out)
    return 0


def _folder(path: Path, model: Path | None, asked: dict[str, Any]) -> Any:
    import msgspec

    from kons.serve.fold import Settings
    from kons.serve.folder import ServiceFolder, is_service

    given = {name: value for name, value in asked.items() if value is not None and value != {}}
    if is_service(path):
        if model is not None:
            raise ConfigurationError(
                f"--model: {path} goes on with the model that it has; leave it out, or begin anew."
            )
        folder = ServiceFolder.open(path)
        begun = msgspec.to_builtins(folder.settings)
        for name, value in given.items():
            if begun[name] != value:
                folder.release()
                raise ConfigurationError(
                    f"--{'set' if name == 'parameters' else name} is {value!r}, and {path} was begun with "
                    f"{begun[name]!r}: leave it out, or begin in another folder."
                )
        return folder
    own = ("learner", "parameters", "task", "key")
    if model is not None and (one := [name for name in own if name in given]):
        what = "key, or has none" if one[0] == "key" else "learner"
        raise ConfigurationError(
            f"--model has its own {what}: leave out --{one[0].replace('parameters', 'set')}."
        )
    if model is None and "target" not in given:
        raise ConfigurationError(
            f"{path} is no service yet: say what it begins with, --model MODEL, or with nothing, --target "
            "COLUMN."
        )
    if given.get("key", "") == given.get("target"):
        raise ConfigurationError(f"--key {given['key']} is the target, too: name another column.")
    recipe_of(given.get("learner", "auto"))
    settings = msgspec.convert(given, Settings)
    if model is None:
        settings.make(settings.task)  # what is wrong with it is said before anything is written
    return ServiceFolder.begin(path, settings, None if model is None else find_model(model))


def _token(file: Path | None, variable: str) -> str | None:
    if file is None:
        token = os.environ.get(variable)
        return None if token is None else _checked(token.strip(), variable)
    try:
        return _checked(file.read_text(encoding="ascii").strip(), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read as a token ({error}).") from error


def _checked(token: str, where: str) -> str:
    if len(token) < 16 or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigurationError(
            f"the token of {where} is too short or odd: expected 16 letters and digits or more."
        )
    return token


def _require_extra() -> None:
    try:
        import msgspec  # noqa: F401
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtraError("kons serve", "serve") from None
