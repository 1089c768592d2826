"""``kons serve`` and ``kons replay`` on the command line: what they refuse before anything is written."""

import json

import pytest

from cli.commands import told_in_one_line
from kons import EmbeddedKONS, Gaussian, Squared, save
from kons.cli import main
from serve.arrivals import arrivals
from serve.running import Running


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KONS_TOKEN", raising=False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "--model MODEL, or with nothing, --target COLUMN"),
        (["--target", "y", "--host", "0.0.0.0"], "which token do they need"),
        (["--target", "y", "--token-file", "none"], "cannot be read as a token"),
        (["--target", "y", "--port", "70000"], "--port 70000"),
        (["--target", "y", "--learner", "nobody"], "there is no learner 'nobody'"),
        (["--target", "y", "--set", "nothing=1"], "nothing"),
    ],
)
def test_what_cannot_be_served_is_told(capsys, arguments, told):
    port = [] if "--port" in arguments else ["--port", "0"]
    err = told_in_one_line(capsys, ["serve", "--dir", "service", *port, *arguments], 2)
    assert told in err


def test_a_model_has_its_own_learner(capsys, tmp_path):
    save(EmbeddedKONS(Gaussian(), Squared()), tmp_path / "model.kons")
    begin = ["serve", "--dir", "service", "--port", "0", "--model", "model.kons"]
    assert "--learner" in told_in_one_line(capsys, [*begin, "--learner", "auto"], 2)
    save(Gaussian(), tmp_path / "model.kons")
    assert "cannot be served" in told_in_one_line(capsys, begin, 2)
    assert "not the folder of a service" in told_in_one_line(capsys, ["replay", "none", "--out", "model"], 1)


def test_events_and_lines_are_streams(tmp_path):
    """Heard as they are noticed, from where one left; an answer for every line."""
    with Running(tmp_path / "service", "--target", "y", "--learner", "embedded") as running:

        def learn(values):
            rows = [{"x": {"v": v}, "y": v} for v in values]
            assert running.client.post("/v1/learn", json=rows).status_code == 200

        def heard(*, after=0):
            with running.client.stream("GET", "/v1/events", headers={"Last-Event-ID": str(after)}) as answer:
                for line in answer.iter_lines():
                    if line.startswith("id: "):
                        number = int(line[4:])
                    if line.startswith("data: "):
                        yield number, json.loads(line[6:])["last"]

        learn([(0.618 * i) % 1.0 for i in range(600)])
        events = heard()
        learn([9.0])
        assert [next(events), next(events)] == [(1, 600), (2, 600)]
        learn([0.5, 12.0])
        assert any(last == 602 for _, last in events)
        assert next(heard(after=1)) == (2, 600)

        def lines():
            for i in range(3):
                yield json.dumps({"id": i, "x": {"v": i}}).encode() + b"\n"

        kind = {"Content-Type": "application/x-ndjson"}
        answer = running.client.post("/v1/predict", content=lines(), headers=kind)
        answers = [json.loads(line) for line in answer.text.splitlines()]
        assert [(told["status"], told["id"]) for told in answers] == [(200, 0), (200, 1), (200, 2)]
        assert running.stop() == 0  # with listeners


def test_a_service_goes_on_as_it_was_begun(capsys, tmp_path):
    with Running(tmp_path / "service", "--target", "y", "--learner", "embedded", "--days", 2) as running:
        for kind, body in arrivals(40, 1):
            assert running.post(kind, body).status_code == 200
        assert "another kons is writing" in told_in_one_line(
            capsys, ["replay", "service", "--out", "model"], 2
        )
        assert running.post("snapshot", {}).json()["records"] > 40
        model = running.client.get("/v1/model.kons").content
        assert running.stop() == 0
    again = ["serve", "--dir", "service", "--port", "0"]
    assert "was begun with 2.0" in told_in_one_line(capsys, [*again, "--days", "3"], 2)
    assert main(["replay", "service", "--out", "model.kons"]) == 0
    assert (tmp_path / "model.kons").read_bytes() == model
    with Running(tmp_path / "service") as running:
        assert running.client.get("/v1/model.kons").content == model
        assert running.stop() == 0
    assert main(["inspect", "model.kons"]) == 0
    assert "written by" in capsys.readouterr().out
    with open(tmp_path / "service" / "log" / "000000000000.log", "wb") as log:
        log.write(b"damaged" * 100)
    assert "its header" in told_in_one_line(capsys, ["replay", "service", "--out", "other"], 1)
    (tmp_path / "service" / "snapshot.kons").unlink()
    assert main(again) == 1
    assert "000000000000.log, byte 0: its header" in capsys.readouterr().err
