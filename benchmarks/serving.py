"""How long does a request to ``kons serve`` take, and beside a River model behind FastAPI?

Eight clients in a process of their own send rows and, a moment later, their labels, over connections that
stay open, at a steady rate; a request counts from the moment it was due, so that one that waits for another
is not left out. The River service is as its documentation suggests: a model in the process, a route each to
predict and to learn, nothing kept on a disk. Loopback only.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil

from benchmarks.reporting import Report, at_most
from benchmarks.settings import Settings

RATE, CLIENTS = 500, 8
COLUMNS = ("CPU ms", "errors", "a second", "memory, end / middle", "MB")
SECONDS, QUICK_SECONDS = 600, 20

RIVER = """
import sys, uvicorn
from fastapi import FastAPI, Request
from river import forest
app, model, waiting = FastAPI(), forest.ARFRegressor(n_models=10, seed=0), {}

@app.post("/v1/predict")
async def predict(request: Request):
    item = await request.json()
    waiting[item["id"]] = item["x"]
    return {"prediction": model.predict_one(item["x"])}

@app.post("/v1/label")
async def label(request: Request):
    item = await request.json()
    model.learn_one(waiting.pop(item["id"]), item["y"])
    return {}

@app.get("/readyz")
async def ready():
    return {}

uvicorn.run(app, port=int(sys.argv[1]), log_level="critical")
"""


def run(settings: Settings) -> Report:
    seconds = QUICK_SECONDS if settings.quick else SECONDS
    table, figures, notes = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, command in services(Path(folder), notes):
            row = measured(command, seconds)
            table.append([name, *row.values()])
            print(f"  {name}: {row}", flush=True)
            if name == "kons serve, auto":
                figures = [
                    at_most(20.0, "99 of 100 requests, ms", row["p99"], f"{RATE} a second, clients included"),
                    at_most(0, "errors", row["errors"], "answers other than 200"),
                    at_most(1.1, "memory, end over middle", row["memory"], "resident"),
                ]
    return Report(
        question=f"How long do requests take at {RATE} a second, half of them labels?",
        data=f"{seconds} seconds each, six numbers a row; {CLIENTS} clients on the same cores",
        columns=("service", "p50, ms", "p99, ms", "p99.9, ms", "longest, ms", *COLUMNS),
        table=table,
        figures=figures,
        notes=notes,
    )


def services(folder: Path, notes: list[str]) -> Any:
    """Names and commands; port 0 stands for one that is free."""
    for learner in ("auto", "embedded"):
        place = [
            "--dir",
            str(folder / learner),
            "--target",
            "y",
            "--learner",
            learner,
            "--task",
            "regression",
            # Whether memory is flat is seen where the ids that are remembered are as many as they may be.
            "--remember",
            "20000",
        ]
        yield f"kons serve, {learner}", [sys.executable, "-m", "kons.cli", "serve", *place, "--port"]
    if find_spec("fastapi") is None or find_spec("river") is None:
        notes.append("FastAPI or River is not installed: no service of theirs (pip install fastapi river).")
        return
    script = folder / "river_service.py"
    script.write_text(RIVER)
    yield "River ARF(10) + FastAPI", [sys.executable, str(script)]


def measured(command: list[str], seconds: float, rate: float = RATE) -> dict[str, float]:
    """Start a service, load it, and stop it."""
    port = free_port()
    with subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL) as service:
        try:
            url = f"http://127.0.0.1:{port}"
            while not ready(url):
                time.sleep(0.1)
            asking = multiprocessing.get_context("spawn").Pool(1)
            with asking:
                waits = asking.apply_async(load, (url, seconds, rate))
                watched, memory = psutil.Process(service.pid), []
                before = sum(watched.cpu_times()[:2])
                while not waits.ready():
                    memory.append(watched.memory_info().rss / 1e6)
                    waits.wait(1.0)
                times, errors, took = waits.get()
                cpu = sum(watched.cpu_times()[:2]) - before
        finally:
            service.terminate()
    p50, p99, p999 = np.percentile(times, [50, 99, 99.9]).tolist()
    half = memory[len(memory) // 2]
    return {
        "p50": p50, "p99": p99, "p99.9": p999, "longest": max(times), "CPU": 1e3 * cpu / len(times),
        "errors": errors, "rate": len(times) / took, "memory": memory[-1] / half, "MB": memory[-1],
    }  # fmt: skip


def load(url: str, seconds: float, rate: float) -> tuple[list[float], int, float]:
    """Milliseconds of each request from when it was due, errors, and how long it all took."""
    return asyncio.run(_load(url, seconds, rate))


async def _load(url: str, seconds: float, rate: float) -> tuple[list[float], int, float]:
    random, times, errors = np.random.default_rng(0), [], 0
    rows = random.normal(size=(1000, 6))
    began = time.perf_counter()

    async def client(number: int) -> None:
        nonlocal errors
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            for turn in range(int(seconds * rate / CLIENTS)):
                due = began + (turn + number / CLIENTS) * CLIENTS / rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                id, is_label = f"{number}-{turn // 2}", turn % 2
                row = rows[(turn // 2 * CLIENTS + number) % len(rows)].tolist()
                if is_label:
                    path, body = "/v1/label", {"id": id, "y": row[0] + float(np.sin(3 * row[1]))}
                else:
                    names = {f"c{i}": value for i, value in enumerate(row)}
                    path, body = "/v1/predict", {"id": id, "x": names}
                answer = await http.post(path, json=body)
                times.append(1e3 * (time.perf_counter() - due))
                errors += answer.status_code != 200

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return times, errors, time.perf_counter() - began


def ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def free_port() -> int:
    import socket

    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])
