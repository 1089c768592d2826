"""``kill -9`` under load: nothing that was answered is lost, nothing is learned twice, no bit is another."""

import json
import threading

import httpx
import numpy as np
import pytest

import effort
from kons import Keyed
from kons.cli import main
from kons.files import from_bytes, to_bytes
from kons.recipes import for_task
from kons.serve.fold import LARGEST, LIVE
from serve.arrivals import arrivals
from serve.running import Running
from serve.test_fold import by_hand

CLIENTS = 8


class Client(threading.Thread):
    """Sends its requests in order, each until it is answered."""

    def __init__(self, number, requests, where, up, answered):
        super().__init__()
        self.requests, self.where, self.answers = requests, where, []
        self.number, self.odd, self.up, self.answered = number, [], up, answered

    def run(self):
        with httpx.Client(timeout=20) as client:
            for kind, body in self.requests:
                body = {**body, "id": f"{self.number}: {body['id']}"}
                while True:
                    self.up.wait()
                    try:
                        answer = client.post(f"{self.where['url']}v1/{kind}", json=body)
                    except httpx.HTTPError:
                        continue
                    if answer.status_code == 200:
                        self.answers.append((kind, body["id"], answer.json()))
                        self.answered.release()
                        break
                    if answer.status_code not in (429, 503):
                        self.odd.append((answer.status_code, answer.text))
                        break


@pytest.mark.parametrize("learner", effort.some(["embedded", "auto", "keys"], "embedded", "keys"))
def test_kills_change_no_bit_and_lose_no_answer(tmp_path, learner):
    keys = 40 if learner == "keys" else 0
    kills, folder = effort.amount(1, 100), tmp_path / "service"
    begin = ["--target", "y", "--task", "regression"]
    begin += ["--key", "key"] if keys else ["--learner", learner]
    always = ["--keep-log", "--snapshot-every", 150]
    random, where = np.random.default_rng(0), {}
    count = effort.amount(40, 1500)
    up, answered = threading.Event(), threading.Semaphore(0)
    asked = [list(arrivals(count, seed=n, keys=keys)) for n in range(CLIENTS)]
    clients = [Client(n, requests, where, up, answered) for n, requests in enumerate(asked)]
    running = Running(folder, *begin, *always)
    where["url"] = running.url
    try:
        up.set()
        for client in clients:
            client.start()
        for _ in range(kills):
            for _ in range(random.integers(40, 160)):
                answered.acquire()
            up.clear()  # requests are on their way
            running.kill()
            running = Running(folder, *always, ready=False)
            where["url"] = running.url
            up.set()
        for client in clients:
            client.join()
        served = running.client.get("/v1/model.kons").content
        facts = running.client.get("/v1/metrics.json").json()
        assert running.stop() == 0
    finally:
        running.__exit__()
    assert [client.odd for client in clients] == [[]] * CLIENTS
    assert main(["replay", str(folder), "--out", str(tmp_path / "replayed.kons")]) == 0
    assert (tmp_path / "replayed.kons").read_bytes() == served

    # The log by itself, put to a learner by hand: the same bits, each label once.
    whole = tmp_path / "whole.log"
    logs = sorted((folder / "log").iterdir())
    whole.write_bytes(bytes(32) + b"".join(log.read_bytes()[32:] for log in logs))
    by_itself = for_task("regression", "auto" if keys else learner, **({"effort": "tiny"} if keys else {}))
    if keys:
        by_itself = Keyed(by_itself, "key", live=LIVE, largest=LARGEST)
    by_hand(by_itself, whole)
    assert to_bytes(by_itself) == to_bytes(from_bytes(served))
    labels = [id for client in clients for kind, id, _ in client.answers if kind in ("label", "learn")]
    assert len(labels) == len(set(labels)) == facts["rows"]
    assert facts["counts"]["labelled"] + facts["counts"]["learned"] == len(labels)
    first = {(kind, id): json.dumps(answer) for client in clients for kind, id, answer in client.answers}
    assert len(first) == sum(len(client.requests) for client in clients)
