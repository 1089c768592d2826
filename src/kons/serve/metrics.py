"""For Prometheus: counts, sizes and times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from kons.serve.facts import counts_of

if TYPE_CHECKING:
    from kons.serve.writer import Writer

__all__ = ["Metrics"]

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


class Metrics:
    """Of one writer."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self._requests = Counter(
            "kons_requests", "requests by route and status", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "kons_request_seconds",
            "time to answer a request",
            ["route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._found: dict[tuple[str, int], tuple[Any, Any]] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
        if (route, status) not in self._found:
            self._found[route, status] = (
                self._requests.labels(route, str(status)),
                self._seconds.labels(route),
            )
        count, times = self._found[route, status]
        count.inc()
        times.observe(seconds)

    def text(self) -> bytes:
        """All of them, as Prometheus reads them."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Any]:
        """What is known without asking the writer: read as it is, a moment old."""
        writer = self._writer
        yield GaugeMetricFamily("kons_ready", "1: requests are taken", value=float(writer.state == "ready"))
        if writer.state != "ready":
            return
        fold = writer.fold
        records = CounterMetricFamily("kons_records", "what became of records", labels=["what"])
        for name, count in counts_of(fold, writer).items():
            records.add_metric([name.replace(" ", "_")], count)
        yield records
        loss = GaugeMetricFamily("kons_window_loss", "mean loss of the last rows", labels=["of"])
        for name, value in fold.monitor.losses().items():
            loss.add_metric([name], value)
        yield loss
        for name, about, value in (
            ("kons_rows", "rows learned", fold.learner.rows_seen or 0),
            ("kons_pending", "rows that wait for their label", fold.learner.queue.pending),
            ("kons_waiting", "records that wait for the writer", writer.waiting),
            ("kons_log_records", "records in the log", fold.number),
            ("kons_events", "events noticed", fold.noticed),
        ):
            yield GaugeMetricFamily(name, about, value=float(value))
