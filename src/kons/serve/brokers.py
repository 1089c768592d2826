"""Rows and labels from a broker: acknowledged after the commit, and learned once by their ids.

::

    mqtt://host:1883/houses   houses/predict, houses/label, houses/learn; answers: houses/answers/predict, ...
    nats://host:4222/houses   the same with dots, out of the JetStream stream ``houses``

One message after another, in the broker's order. A message that was applied and not acknowledged comes
again, and its id says that it was learned. What cannot be applied now (a full disk) is tried again; what
never can is answered so, and acknowledged. Needs the extra ``brokers``.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from kons.errors import ConfigurationError, MissingExtraError
from kons.serve.log import Record
from kons.serve.problems import Problem
from kons.serve.requests import FIELDS, decoded, item_of, record_of

if TYPE_CHECKING:
    from kons.serve.app import Service

__all__ = ["Source", "source_of", "taking"]

#: Seconds for a connection, between two tries, and after which NATS sends what was not acknowledged again.
CONNECT, AGAIN, FORGOTTEN = 10.0, 0.1, 10.0


class Source(NamedTuple):
    """Where messages come from."""

    url: str
    """Without the topic."""
    topic: str
    shown: str
    """Without a password."""

    @property
    def is_mqtt(self) -> bool:
        """MQTT, or NATS."""
        return self.url.startswith("mqtt")


def source_of(url: str) -> Source:
    """What ``--from`` says; :class:`ConfigurationError` if it says nothing that there is."""
    try:
        parts = urlsplit(url)
        topic, shown = parts.path.strip("/"), f"{parts.scheme}://{parts.hostname}"
        known = parts.scheme in ("mqtt", "mqtts", "nats") and parts.hostname and parts.port != 0
    except ValueError:
        known = topic = shown = ""
    if not known or not topic or any(sign in url for sign in "#?") or any(sign in topic for sign in "+*> ."):
        raise ConfigurationError(
            "--from: expected mqtt://HOST:PORT/TOPIC or nats://HOST:PORT/SUBJECT, the beginning of "
            "TOPIC/predict, TOPIC/label and TOPIC/learn, without dots and wildcards."
        )
    source = Source(url[: url.index(parts.netloc) + len(parts.netloc)], topic, shown)
    if not source.is_mqtt and "/" in topic:
        raise ConfigurationError(
            f"--from: the subject {topic!r} names a stream of NATS, which has no slashes."
        )
    try:
        if source.is_mqtt:
            import faststream.mqtt
        else:
            import faststream.nats  # noqa: F401
    except ImportError:
        raise MissingExtraError("kons serve --from", "brokers") from None
    return source


@asynccontextmanager
async def taking(source: Source, service: Service) -> AsyncIterator[None]:
    """While this lasts, messages are applied."""
    # The broker keeps what comes while the service is down, under a name that is that of its folder.
    name = "kons-" + hashlib.blake2b(bytes(service.writer.folder.path.resolve()), digest_size=8).hexdigest()
    for library in ("zmqtt", "nats"):  # which print the stack of every try
        logging.getLogger(library).setLevel(logging.CRITICAL)
    broker, subscriber, dot = (_mqtt if source.is_mqtt else _nats)(source, name)

    async def handle(message: Any) -> None:
        raw = message.raw_message
        kind = (raw.topic if source.is_mqtt else raw.subject).rpartition(dot)[2]
        told = await _answer(service, kind, message.body)
        await broker.publish(msgspec.json.encode(told), dot.join((source.topic, "answers", kind)))
        await message.ack()

    subscriber(handle)
    try:
        await asyncio.wait_for(broker.start(), CONNECT)
    except Exception as error:
        why = "nobody answers" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise ConfigurationError(
            f"--from {source.shown}: {why}. Is the broker there (of NATS: with JetStream, -js)?"
        ) from error
    try:
        yield
    finally:
        if source.is_mqtt:  # to stop is to unsubscribe, and what comes meanwhile would not be kept
            await (await broker.connect()).disconnect()
        await broker.stop()


async def _whole(message: Any) -> Any:
    """Messages are taken as they are."""
    return message


def _mqtt(source: Source, name: str) -> tuple[Any, Any, str]:
    from faststream import AckPolicy
    from faststream.mqtt import MQTTBroker, QoS

    week = 7 * 86_400
    keeping: dict[str, Any] = {"client_id": name, "clean_session": False, "session_expiry_interval": week}
    broker = MQTTBroker(source.url, logger=None, apply_types=False, graceful_timeout=2.0, **keeping)
    how: dict[str, Any] = {
        "qos": QoS.AT_LEAST_ONCE,
        "ack_policy": AckPolicy.MANUAL,
        "decoder": _whole,
        "no_reply": True,
    }
    return broker, broker.subscriber(f"{source.topic}/+", **how), "/"


def _nats(source: Source, name: str) -> tuple[Any, Any, str]:
    from faststream import AckPolicy
    from faststream.nats import JStream, NatsBroker, PullSub
    from nats.js.api import ConsumerConfig

    broker = NatsBroker(
        source.url, logger=None, apply_types=False, graceful_timeout=2.0, max_reconnect_attempts=-1
    )
    # One at a time: a label that overtook its row would be unknown.
    config = ConsumerConfig(max_ack_pending=1, ack_wait=FORGOTTEN)
    subscriber = broker.subscriber(
        f"{source.topic}.*",
        stream=JStream(source.topic),
        durable=name,
        config=config,
        pull_sub=PullSub(),
        ack_policy=AckPolicy.MANUAL,
        decoder=_whole,
        no_reply=True,
    )
    return broker, subscriber, "."


async def _answer(service: Service, kind: str, body: bytes) -> Any:
    """The answer, once it is on the disk: an object, or for a list a list."""
    try:
        if kind not in FIELDS:
            raise Problem(404, f"{kind[:50]!r} is none of {', '.join(FIELDS)}.")
        if len(body) > service.most_bytes:
            raise Problem(413, f"a message has more than {service.most_bytes:,} bytes (--max-body).")
        item = decoded(body)
    except Problem as problem:
        return problem.document()
    items = item if isinstance(item, list) else [item]
    records = [_identified(kind, one) for one in items]
    while True:
        try:
            answers = await service.work(records) if records else []
            if not any(isinstance(answer, Problem) and answer.status == 503 for answer in answers):
                told = [item_of(answer) for answer in answers]
                return told if isinstance(item, list) else told[0]
        except Problem:
            if service.writer.state not in ("starting", "ready"):
                raise  # it comes again
        await asyncio.sleep(AGAIN)


def _identified(kind: Any, item: Any) -> Record | Problem:
    record = record_of(kind, item)
    if isinstance(record, Record) and item.get("id") is None:
        return Problem(422, "'id' is missing: a message may come twice, and is learned once by its id.")
    return record
