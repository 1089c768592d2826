"""The service over HTTP, in this process: what it answers, what it refuses, what changes nothing."""

import asyncio
import contextlib
import json
import random
import threading

import httpx
import msgspec
import pytest
import uvicorn
from uvicorn.server import ServerState

import effort
from kons.errors import FileError
from kons.files import from_bytes, to_bytes
from kons.recipes import for_task
from kons.serve.app import Service
from kons.serve.fold import Settings
from kons.serve.folder import ServiceFolder
from kons.serve.log import Record
from kons.serve.problems import Problem
from kons.serve.protocol import MOST_HEAD, quick_protocol
from kons.serve.writer import Work, Writer
from serve.arrivals import arrivals

pytestmark = pytest.mark.filterwarnings("ignore::kons.errors.KonsWarning")
EMBEDDED = Settings(learner="embedded", task="regression")
LINES = {"Content-Type": "application/x-ndjson"}


class Client:
    """Asks an application in this process."""

    def __init__(self, service, runner, writer):
        transport = httpx.ASGITransport(service.app, raise_app_exceptions=False)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")
        self.run, self.service, self.writer = runner.run, service, writer

    def request(self, method, path, **options):
        return self.run(self._http.request(method, path, **options))

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, **options):
        return self.request("POST", path, **options)


@contextlib.contextmanager
def serving(path, settings=EMBEDDED, *, guard=None, **writing):
    """A client of a service in this folder."""
    exists = (path / "service.json").exists()
    folder = ServiceFolder.open(path) if exists else ServiceFolder.begin(path, settings, None)
    ready = threading.Event()
    writer = Writer(folder, ready=lambda _: ready.set(), ended=ready.set, **writing)
    service = Service(writer, most_bytes=100_000, guard=guard or {"token": None})
    writer.start()
    ready.wait()
    try:
        with asyncio.Runner() as runner:
            yield Client(service, runner, writer)
    finally:
        writer.stop()
    assert writer.failure is None


def test_the_same_predictions_as_in_the_process(tmp_path):
    learner, count = for_task("regression", "embedded"), effort.amount(60, 2000)
    with serving(tmp_path / "service") as client:
        for kind, body in arrivals(count, 3):
            answer = client.post(f"/v1/{kind}", json=body)
            assert answer.status_code == 200
            if kind == "predict":
                ends = learner.predict_interval_one(body["x"]).tolist() if learner.rows_seen else None
                assert answer.json()["prediction"] == learner.ask(body["x"], body["id"])
                assert answer.json()["row"] == learner.rows_seen
                assert answer.json()["interval"] in (ends, None)
            elif kind == "label":
                learner.tell(body["id"], body["y"])
            else:
                learner.learn_one(body["x"], body["y"])
        assert to_bytes(from_bytes(client.get("/v1/model.kons").content)) == to_bytes(learner)


def test_a_list_and_lines_are_answered_item_by_item(tmp_path):
    items = [
        {"id": "a", "x": {"v": 1}},
        {"id": "b", "x": {"v": [1]}},
        {"x": {"v": 2}},
        {"id": "a", "x": {"v": 2}},
    ]
    with serving(tmp_path / "service") as client:
        answers = client.post("/v1/predict", json=items).json()
        assert [answer["status"] for answer in answers] == [200, 422, 200, 409]
        assert answers[1]["column"] == "v"
        assert answers[2]["id"]
        lines = b"\n".join(json.dumps({"id": id, "y": 1.0}).encode() for id in ("a", "a", "b")) + b"\n{\n"
        told = client.post("/v1/label", content=lines, headers=LINES)
        answers = [json.loads(line) for line in told.text.splitlines()]
        assert [answer["status"] for answer in answers] == [200, 200, 404, 400]
        assert [answer.get("already") for answer in answers] == [False, True, None, None]
        assert client.post("/v1/learn", json=[]).json() == []


def test_labels_that_come_reversed_twice_early_or_never(tmp_path):
    count = effort.amount(40, 1000)
    with serving(tmp_path / "service") as client:
        early = client.post("/v1/label", json={"id": 0, "y": 0.0}).status_code
        for i in range(count):
            assert client.post("/v1/predict", json={"id": i, "x": {"v": i / count}}).status_code == 200
        dropped = set(range(0, count, 5))
        told = [i for i in reversed(range(count)) if i not in dropped]
        for again in (False, True):
            for i in told:
                answer = client.post("/v1/label", json={"id": i, "y": i / count}).json()
                assert answer["already"] is again
        facts = client.get("/v1/metrics.json").json()
    counts = facts["counts"]
    assert early == 404
    assert facts["rows"] == counts["labelled"] == counts["repeated"] == len(told)
    assert facts["pending"] == len(dropped)
    assert counts["predicted"] == count
    assert counts["refused"] == 1


def test_who_may_what(tmp_path):
    guard = {"token": "t" * 20, "read_token": "r" * 20, "names": ["models.example"]}
    with serving(tmp_path / "service", guard=guard) as client:

        def status(method, path, token=None, **heads):
            heads = {name.replace("_", "-"): value for name, value in heads.items()}
            if token:
                heads["Authorization"] = f"Bearer {token}"
            content = b'{"x": {"v": 1}}' if method == "POST" else None
            heads.setdefault("Content-Type", "application/json")
            return client.request(method, path, content=content, headers=heads).status_code

        whole, part = "t" * 20, "r" * 20
        assert status("GET", "/") == status("GET", "/healthz") == status("GET", "/readyz") == 200
        assert status("POST", "/v1/predict") == status("GET", "/v1/model") == status("GET", "/metrics") == 401
        assert status("POST", "/v1/predict", "t" * 19) == status("GET", "/v1/model", "") == 401
        assert status("POST", "/v1/predict", part) == status("POST", "/v1/snapshot", part) == 403
        assert status("GET", "/v1/model", part) == status("GET", "/metrics", part) == 200
        assert status("POST", "/v1/predict", whole) == 200
        for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8000", ""):
            assert status("POST", "/v1/predict", whole, Host=host) == 403
        for host in ("localhost:1", "127.0.0.1", "[::1]:8000", "models.example"):
            assert status("POST", "/v1/predict", whole, Host=host) == 200
        for origin in ("http://evil.example", "null", "http://127.0.0.1:9"):
            assert status("POST", "/v1/predict", whole, Origin=origin) == 403
        assert status("POST", "/v1/predict", whole, Origin="http://127.0.0.1:8000") == 200
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            assert status("POST", "/v1/predict", whole, Content_Type=kind) == 415
        assert status("POST", "/v1/predict", whole, Content_Encoding="gzip") == 415


def test_events_go_on_where_one_left(tmp_path):
    with serving(tmp_path / "service") as client:
        values = [9.0 if i == 650 else (i * 0.618) % 1.0 for i in range(700)]
        assert client.post("/v1/learn", json=[{"x": {"v": v}, "y": v} for v in values]).status_code == 200
        events = client.get("/v1/metrics.json").json()["events"]
        assert "out of range" in {event["kind"] for event in events}
        numbers = [event["number"] for event in events]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    with serving(tmp_path / "service") as client:  # after a restart, too
        assert client.get("/v1/metrics.json").json()["events"] == events


def test_a_full_disk_learns_nothing(tmp_path, monkeypatch):
    with serving(tmp_path / "service") as client:
        assert client.post("/v1/predict", json={"id": 1, "x": {"v": 1}}).status_code == 200
        before = client.get("/v1/model.kons").content

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as context:
            context.setattr("os.posix_fallocate", full)
            answers = []
            for i in range(30):
                rows = [{"id": f"{i} {k}", "x": {"v": i, "long": "x" * 4000}} for k in range(20)]
                answers += client.post("/v1/predict", json=rows).json()
                if answers[-1]["status"] == 503:
                    break
        assert "No space" in answers[-1]["detail"]
        learned = sum(answer["status"] == 200 for answer in answers)
        assert client.get("/v1/model").json()["pending"] == 1 + learned
        assert client.post("/v1/label", json={"id": 1, "y": 1.0}).json() == {
            "id": 1,
            "already": False,
            "row": 1,
        }
        assert client.get("/v1/model.kons").content != before


def test_too_much_that_waits_is_refused(tmp_path):
    with serving(tmp_path / "service", most_waiting=10) as client:
        held, let = threading.Event(), threading.Event()

        def hold(_):
            held.set()
            let.wait()

        client.writer.submit(Work(lambda _: None, question=hold))
        held.wait()
        client.writer.submit(Work(lambda _: None, question=lambda _: None))
        answer = client.post("/v1/learn", json=[{"x": {"v": 1}, "y": 1}] * 10)
        let.set()
        assert answer.status_code == 429
        assert answer.headers["retry-after"]


def test_a_long_list_lets_others_in_between(tmp_path):
    with serving(tmp_path / "service") as client:
        held, let, done, order = threading.Event(), threading.Event(), threading.Event(), []

        def hold(_):
            held.set()
            let.wait()

        rows = [Record("learn", i, 0.0, {"v": i % 7}, 1.0 * i) for i in range(1000)]
        rows[600] = Problem(422, "odd")
        client.writer.submit(Work(lambda _: None, question=hold))
        held.wait()
        client.writer.submit(Work(lambda answers: (order.append(answers), done.set()), rows))
        client.writer.submit(Work(order.append, [Record("learn", "other", 0.0, {"v": 0.0}, 0.0)]))
        let.set()
        assert done.wait(60)
    other, whole = order
    assert other[0]["row"] < len(rows) / 2  # behind one group, of 256 at most
    learned = [answer for answer in whole if answer is not rows[600]]
    assert [answer["id"] for answer in learned] == [record.id for record in rows if record is not rows[600]]
    numbers = [answer["row"] for answer in learned]
    assert numbers == sorted(numbers)
    assert len(set(numbers) | {other[0]["row"]}) == len(rows)


@pytest.mark.parametrize("body", [b"", b"3\r\nabc\r\n0\r\n"], ids=["headers", "trailers"])
@pytest.mark.parametrize("endless", [b"c: d\r\n" * 100, b"c" * 600], ids=["many", "one"])
def test_headers_and_trailers_without_end_are_cut_off(connected, body, endless):
    protocol = connected
    protocol.data_received(HEAD + (b"\r\n" + body if body else b"a: "))
    sent = 0
    while not protocol.transport.closed:
        assert sent < MOST_HEAD + 2000
        protocol.data_received(endless)
        sent += len(endless)
    assert sent > MOST_HEAD - 2000


def test_a_body_in_many_chunks_is_not_cut_off(connected):
    protocol = connected
    protocol.data_received(HEAD + b"\r\n")
    for _ in range(2 * MOST_HEAD // 6):
        protocol.data_received(b"1\r\nx\r\n")
    assert not protocol.transport.closed


HEAD = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"


class Wire:
    """A transport that only says whether it was closed."""

    closed = False

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed

    def get_extra_info(self, *_):
        return None

    def pause_reading(self):
        pass

    resume_reading = pause_reading


@pytest.fixture
def connected():
    """uvicorn's end of a connection."""
    pytest.importorskip("httptools", reason="httptools is not installed: h11 reads requests here")
    config = uvicorn.Config(_never, ws="none", lifespan="off", log_config=None, proxy_headers=False)
    config.load()
    with asyncio.Runner() as runner:
        protocol = quick_protocol()(config, ServerState(), {}, _loop=runner.get_loop())
        protocol.connection_made(Wire())
        yield protocol


async def _never(scope, receive, send):
    await asyncio.Event().wait()


# ---- hostile requests

VALUES = [
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    -1e308,
    10**400,
    -(10**30),
    2**63,
    "",
    "text",
    "x" * 5000,
    "\x00",
    "\ud7ff",
    [],
    {},
    [1],
    [[]],
    {"a": {}},
    {"": 1},
    {"v" * 300: 1},
    {"v": 1},
    {"v": "text"},
    {"v": True},
    {"v": None},
    [1, 2],
    [None],
    ["a"],
    {"__class__": 1, "$ref": "x"},
    {f"c{i}": i for i in range(1500)},
    {"v": 1e400},
]
RAW = [
    b"",
    b"{",
    b"nul",
    b'{"x": NaN}',
    b'{"x": {"v": Infinity}}',
    b"\xff\xfe",
    b'{"x": {"v": "\\ud800"}}',
    b"[" * 5000,
    b'{"id": 1, "id": 2, "x": {"v": 1}}',
    b"\x80\x04\x95",
    b"x" * 200_000,
    b'{"x": {"v": 1e99999}}',
    b"0",
    b'"',
    b'{"x": {"v": -1' + b"0" * 5000 + b"}}",
    b"\n\n\n",
    b'\xef\xbb\xbf{"x": 1}',
]
PATHS = [
    "/v1/predict",
    "/v1/label",
    "/v1/learn",
    "/v1/explain",
    "/v1/snapshot/..",
    "/../../etc/passwd",
    "/v1/%2e%2e",
    "/v1/model",
    "/v1/predict/",
    "//",
    "/v1/%00",
    "/v1/model.kons?path=/etc/passwd",
    "/v1/" + "a" * 3000,
]


def hostile(seed):
    """A request as nobody should send it."""
    draw = random.Random(seed)
    path = draw.choice(PATHS[:3]) if draw.random() < 0.7 else draw.choice(PATHS)
    heads = {
        "Content-Type": draw.choice(["application/json"] * 5 + ["application/x-ndjson", "text/plain", ""])
    }
    if draw.random() < 0.2:
        heads[draw.choice(["Host", "Origin", "Authorization", "Last-Event-ID", "Transfer-Encoding-X"])] = (
            draw.choice(["", "evil", "a" * 5000, "Bearer", "Bearer \t", "127.0.0.1", "http://"])
        )
    if draw.random() < 0.4:
        body = draw.choice(RAW)
    else:
        # Never one that is right: at least one of its parts is not.
        item = {name: draw.choice(VALUES) for name in draw.sample(["id", "x", "y", "z"], draw.randint(0, 4))}
        item["wrong"] = 1
        body = json.dumps(draw.choice([item, [item, item], {"records": item}])).encode()
    return draw.choice(["POST"] * 6 + ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]), path, heads, body


def test_hostile_requests_change_nothing(tmp_path):
    with serving(tmp_path / "service") as client:
        for kind, body in arrivals(30, 5):
            client.post(f"/v1/{kind}", json=body)
        before, log = client.get("/v1/model.kons").content, tmp_path / "service" / "log" / "000000000000.log"
        written = log.read_bytes()
        for seed in range(effort.amount(150, 10_000)):
            method, path, heads, body = hostile(seed)
            answer = client.request(method, path, headers=heads, content=body)
            assert answer.status_code < 500, (method, path, heads, body[:100], answer.text)
            if answer.status_code >= 400:
                assert answer.json()["status"] == answer.status_code
        assert client.get("/v1/model.kons").content == before
        assert log.read_bytes() == written
        assert client.get("/v1/metrics.json").json()["counts"]["bugs"] == 0


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_odd_values_are_learned_or_named(tmp_path, value):
    """Whatever stands where a value may: 200, or a problem; what was logged can be replayed."""
    text = json.dumps(value)
    with serving(tmp_path / "service") as client:
        for body in (
            f'{{"x": {{"v": {text}}}, "y": 1}}',
            f'{{"x": {text}, "y": 1}}', f'{{"x": {{"v": 1}}, "y": {text}}}',
            f'{{"x": {{"v": 2}}, "y": 2, "id": {text}}}', f'{{"x": {{"v": {text}, "w": "u"}}, "y": 1}}',
        ):  # fmt: skip
            for kind in ("learn", "predict"):
                heads = {"Content-Type": "application/json"}
                content = body if kind == "learn" else body.replace(', "y": 1', "")
                answer = client.post(f"/v1/{kind}", content=content.encode(), headers=heads)
                assert answer.status_code in (200, 400, 409, 422), answer.text
        facts = client.get("/v1/metrics.json").json()
        assert facts["counts"]["bugs"] == 0
        last = client.get("/v1/model.kons").content
    with serving(tmp_path / "service") as client:
        assert client.get("/v1/model.kons").content == last


def test_what_can_be_asked_is_described(tmp_path):
    with serving(tmp_path / "service") as client:
        described = client.get("/v1/openapi.json").json()["paths"]
        for path, methods in described.items():
            for method in methods:
                if path != "/v1/events":
                    heads = {"Content-Type": "application/json"} if method == "post" else {}
                    answer = client.request(method.upper(), path, headers=heads)
                    assert answer.status_code not in (404, 405)
        assert msgspec.json.decode(client.get("/v1/model").content)["learner"]
        assert b"kons_rows 0.0" in client.get("/metrics").content


def test_a_listener_who_takes_nothing_is_dropped(tmp_path, monkeypatch):
    """Its place is free again, and others are answered meanwhile."""
    monkeypatch.setattr("kons.serve.guard.PATIENCE", 0.0)
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/v1/events",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1")],
    }
    seen = []
    with serving(tmp_path / "service") as client:
        app = client.service.app

        async def silent():
            await asyncio.Event().wait()

        async def full(message):
            seen.append((message["type"], client.service.listeners))
            await asyncio.Event().wait()

        client.run(app(scope, silent, full))
        assert seen == [("http.response.start", 1)]
        assert client.service.listeners == 0
        monkeypatch.undo()
        assert client.get("/readyz").status_code == 200


def test_a_disk_that_fills_while_an_old_identifier_is_forgotten_is_no_bug(tmp_path, monkeypatch):
    settings = Settings(target="y", learner="embedded", task="regression", key="k")
    with serving(tmp_path / "service", settings) as client:
        assert client.post("/v1/predict", json={"id": "old", "x": {"k": "a", "v": 1.0}}).status_code == 200
        due = [[], [], [], ["old"]]  # once: the model is then made of the log again
        with monkeypatch.context() as patched:
            patched.setattr("kons.serve.identifiers.Identifiers.expire", lambda *_: due.pop())

            def full(*_):
                raise FileError("the folder of learners is full.")

            patched.setattr("kons.keyed.Keyed.forget", full)
            answer = client.post("/v1/learn", json={"id": "new", "x": {"k": "b", "v": 2.0}, "y": 1.0})
            assert (answer.status_code, "Nothing was learned" in answer.text) == (503, True)
        facts = client.get("/v1/metrics.json").json()
        assert (facts["rows"], facts["pending"], facts["counts"]["bugs"]) == (0, 1, 0)
        assert client.post("/v1/label", json={"id": "old", "y": 1.0}).status_code == 200
