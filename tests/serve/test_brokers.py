"""Rows and labels from real brokers, started here: nothing lost by a ``kill -9``, nothing learned twice."""

import asyncio
import json
import shutil
import socket
import subprocess

import pytest

import effort
from cli.commands import told_in_one_line
from kons.files import from_bytes, to_bytes
from kons.recipes import for_task
from serve.arrivals import arrivals
from serve.running import Running

SERVERS = {"mqtt": "mosquitto", "nats": "nats-server"}


def a_free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


# NATS takes three times as long: each message is acknowledged before the next.
@pytest.fixture(params=effort.some(SERVERS, "mqtt"))
def url(request, tmp_path):
    program = shutil.which(SERVERS[request.param]) or shutil.which(f"/usr/sbin/{SERVERS[request.param]}")
    if program is None:
        pytest.skip(f"{SERVERS[request.param]} is not installed: make services says how to get it")
    port = a_free_port()
    if request.param == "mqtt":
        settings = tmp_path / "mosquitto.conf"
        settings.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        command = [program, "-c", str(settings)]
    else:
        command = [program, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(tmp_path / "streams")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        while True:
            assert server.poll() is None
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                continue
        yield f"{request.param}://127.0.0.1:{port}/houses"
        server.kill()


async def sent(url, messages, *, answers=0):
    """Send messages, and hear so many answers."""
    address, _, topic = url.rpartition("/")
    heard, enough = [], asyncio.Event()
    if url.startswith("mqtt"):
        from faststream.mqtt import MQTTBroker as Broker

        dot, wild = "/", "#"
        options, how = {"qos": 1}, {"qos": 1}
    else:
        from faststream.nats import NatsBroker as Broker

        dot, wild, options, how = ".", ">", {}, {"stream": topic}
    broker = Broker(address, logger=None, apply_types=False)

    async def as_it_is(message):
        return message

    @broker.subscriber(dot.join((topic, "answers", wild)), decoder=as_it_is, **options)
    async def hear(answer):
        heard.append(json.loads(answer.body))
        if len(heard) == answers:
            enough.set()

    async with broker:
        await broker.start()
        for kind, body in messages:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            await broker.publish(data, dot.join((topic, kind)), **how)
        if answers:
            await asyncio.wait_for(enough.wait(), 60)
    return heard


def test_what_a_broker_sends_is_learned_once(url, tmp_path):
    folder, messages = tmp_path / "service", list(arrivals(30, 2))
    half, labels = len(messages) // 2, sum(kind != "predict" for kind, _ in messages)
    begin = ("--target", "y", "--learner", "embedded", "--task", "regression", "--from", url)
    row = {"x": {"a": 1}, "y": 1}

    def wait_for(running, count, least):
        while running.client.get("/v1/metrics.json").json()["counts"][count] < least:
            pass

    with Running(folder, *begin) as running:
        odd = [("predict", b"{"), ("learn", row), ("drop", row), ("label", {"id": "no", "y": 1})]
        answers = asyncio.run(sent(url, odd, answers=4))
        assert [answer["status"] for answer in answers] == [400, 422, 404, 404]
        asyncio.run(sent(url, messages[:half]))
        wait_for(running, "predicted", 3)
        running.kill()
    with Running(folder, "--from", url) as running:  # takes what was not acknowledged
        answers = asyncio.run(sent(url, messages[half - 1 : half], answers=1))
        assert answers[0]["status"] == 200
        assert running.stop() == 0
    asyncio.run(sent(url, messages[half:]))  # while nobody is there
    with Running(folder, "--from", url) as running:
        asyncio.run(sent(url, [(kind, [body]) for kind, body in messages]))
        wait_for(running, "repeated", len(messages))
        facts = running.client.get("/v1/metrics.json").json()
        assert facts["rows"] == facts["counts"]["labelled"] + facts["counts"]["learned"] == labels
        model = running.client.get("/v1/model.kons").content
    learner = for_task("regression", "embedded")
    for kind, body in messages:
        verb = {"predict": learner.ask, "label": learner.tell, "learn": learner.learn_one}[kind]
        verb(*(body[name] for name in {"predict": "x id", "label": "id y", "learn": "x y"}[kind].split()))
    assert to_bytes(from_bytes(model)) == to_bytes(learner)


@pytest.mark.parametrize(
    "url", ["amqp://here/houses", "mqtt://here", "nats://here/a/b", "mqtt://:x/a", "mqtt://h/a/#"]
)
def test_a_broker_that_cannot_be_is_refused(url, capsys, tmp_path):
    arguments = ["serve", "--dir", str(tmp_path / "service"), "--target", "y", "--port", "0", "--from", url]
    assert "--from" in told_in_one_line(capsys, arguments, 2)
    assert not (tmp_path / "service").exists()
