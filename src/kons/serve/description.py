"""What can be asked of the service, as OpenAPI."""

from __future__ import annotations

from typing import Any

from kons import __version__
from kons.serve.requests import FIELDS

__all__ = ["OTHERS", "openapi"]

ROW = {
    "description": "column -> number, text, true, false or null; or a list of numbers",
    "oneOf": [{"type": "object"}, {"type": "array"}],
}
ID: dict[str, Any] = {"type": ["string", "integer"]}
LABEL: dict[str, Any] = {"type": ["number", "string", "boolean", "array"]}
PREDICTED = {
    "id": ID,
    "prediction": {},
    "interval": {"type": ["array", "null"], "description": "lower and upper end; null before it is known"},
    "probabilities": {"type": "object"},
    "novelty": {"type": ["number", "null"]},
    "row": {"type": "integer", "description": "rows learned before"},
}
LEARNED = {
    "id": ID,
    "already": {"type": "boolean"},
    "row": {"type": "integer", "description": "rows learned"},
}
HELD = {"id": ID, "x": ROW, "y": LABEL}
#: Of those that take records: what the answer holds.
RECORDS = {
    "predict": ("predict a row, which then waits for its label", PREDICTED),
    "label": ("learn a row that was predicted", LEARNED),
    "learn": ("learn a row with its label", LEARNED),
}
#: The other routes: method, what for, and the type of the answer.
OTHERS = {
    "/v1/model": ("get", "what the model is", "application/json"),
    "/v1/model.kons": ("get", "the model as a file, for kons.load", "application/octet-stream"),
    "/v1/snapshot": ("post", "take a snapshot now", "application/json"),
    "/v1/explain": ("post", "why a row would be predicted as it is", "application/json"),
    "/v1/metrics.json": ("get", "how the model is doing", "application/json"),
    "/v1/events": ("get", "what is noticed, as server-sent events; Last-Event-ID", "text/event-stream"),
    "/v1/openapi.json": ("get", "this document", "application/json"),
    "/metrics": ("get", "for Prometheus", "text/plain"),
    "/healthz": ("get", "whether the process is alive", "application/json"),
    "/readyz": ("get", "whether requests are taken: 503 while the log is replayed", "application/json"),
    "/": ("get", "the live page", "text/html"),
}
PROBLEM: dict[str, Any] = {
    "description": "refused, and nothing changed",
    "content": {"application/problem+json": {}},
}


def openapi() -> dict[str, Any]:
    """The document."""
    paths: dict[str, Any] = {}
    for kind, (about, answer) in RECORDS.items():
        needed, more = FIELDS[kind]
        item = {name: HELD[name] for name in sorted(needed | more)}
        one = {
            "type": "object",
            "properties": item,
            "required": sorted(needed),
            "additionalProperties": False,
        }
        told = {"type": "object", "properties": answer}
        each = {"type": "object", "properties": {"status": {"type": "integer"}, **answer}}
        paths[f"/v1/{kind}"] = {
            "post": {
                "summary": about,
                "description": "One item, a list, or application/x-ndjson: lines in, lines out.",
                "requestBody": {"content": _either(one)},
                "responses": {
                    "200": {"description": "done", "content": _either(told, each)},
                    "default": PROBLEM,
                },
            }
        }
    for path, (method, about, kind) in OTHERS.items():
        done = {"200": {"description": "done", "content": {kind: {}}}, "default": PROBLEM}
        paths[path] = {method: {"summary": about, "responses": done}}
    return {"openapi": "3.1.0", "info": {"title": "kons serve", "version": __version__}, "paths": paths}


def _either(one: dict[str, Any], of_many: dict[str, Any] | None = None) -> dict[str, Any]:
    many = {"type": "array", "items": of_many or one}
    return {
        "application/json": {"schema": {"oneOf": [one, many]}},
        "application/x-ndjson": {"schema": of_many or one},
    }
