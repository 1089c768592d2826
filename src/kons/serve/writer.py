"""The one thread in which the model is asked and learns: requests wait for it in a bounded queue.

::

    take what waits      for some milliseconds, or 256 records
    apply each           Fold.apply; what is refused is answered so
    commit               one frame, one fsync
    answer those whose last record this was

A long list is applied in order, over many such groups, and whoever comes meanwhile has a part of each.
Between two of these turns it takes snapshots, and answers questions that change nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from kons.errors import FileError, KonsError
from kons.serve.fold import Fold, Settings
from kons.serve.folder import ServiceFolder
from kons.serve.log import Log, Record, encode
from kons.serve.problems import Problem

__all__ = ["Work", "Writer"]

logger: logging.Logger = logging.getLogger("kons")

#: A group ends after so many records, or so many seconds.
MOST_RECORDS, LONGEST = 256, 0.004
#: A snapshot is due after so many bytes of log.
MOST_BYTES = 64 << 20


class Work:
    """Records of one request, in order, or one question about the model; answered by :attr:`done`."""

    done: Callable[[list[Any]], object]
    records: Sequence[Record | Problem]
    question: Callable[[Fold], Any] | None

    def __init__(
        self,
        done: Callable[[list[Any]], object],
        records: Sequence[Record | Problem] = (),
        question: Callable[[Fold], Any] | None = None,
    ) -> None:
        self.done, self.records, self.question = done, records, question
        self.answers: list[Any] = []
        """To the first records, so far."""
        self.size: int = min(max(1, len(records)), MOST_RECORDS)
        """How much of the queue it takes: what can be of one group."""

    def refuse(self, problem: Problem) -> None:
        """Answer all of it so."""
        self.done([problem] * max(1, len(self.records)))


class Writer(threading.Thread):
    """Owns the fold and its log from :meth:`start` to :meth:`stop`."""

    folder: ServiceFolder
    most_waiting: int
    keep_log: bool
    snapshot_every: int
    counts: dict[str, int]

    def __init__(
        self,
        folder: ServiceFolder,
        *,
        most_waiting: int = 1000,
        snapshot_every: int = 50_000,
        keep_log: bool = False,
        ready: Callable[[int], object] = lambda _: None,
        ended: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(name="kons writer", daemon=True)
        self.folder, self.most_waiting, self.keep_log = folder, most_waiting, keep_log
        self.snapshot_every, self._ready, self._ended = snapshot_every, ready, ended
        self.state: str = "starting"
        """"starting" while the log is replayed, then "ready", "stopping" or "failed"."""
        self.failure: BaseException | None = None
        self.counts = {"groups": 0, "repeated": 0, "refused": 0, "snapshots": 0, "full disk": 0, "bugs": 0}
        self.replayed: int = 0
        self.waiting: int = 0
        """Records that wait."""
        self.told: int = 0
        """The number of the last event that is on the disk."""
        self.events_told: Callable[[], object] = lambda: None
        self.fold: Fold
        self._log: Log
        self._works: deque[Work] = deque()
        self._change = threading.Condition()
        self._since = self._bytes = 0
        self._saving: threading.Thread | None = None

    # ---- from other threads

    def submit(self, work: Work) -> None:
        """Let some work wait its turn; :class:`Problem` where too much waits, or nothing is taken."""
        with self._change:
            if self.state != "ready":
                raise Problem(
                    503, "the log is replayed: try again soon." if self.state == "starting" else "it ends."
                )
            if self.waiting + work.size > self.most_waiting and self._works:
                raise Problem(429, f"{self.waiting:,} records wait already (--queue {self.most_waiting:,}).")
            self._works.append(work)
            self.waiting += work.size
            self._change.notify()

    def stop(self) -> None:
        """Answer all that waits, take a snapshot, and let go of the folder."""
        with self._change:
            if self.state in ("starting", "ready"):
                self.state = "stopping"
            self._change.notify()
        self.join()

    # ---- the thread

    def run(self) -> None:
        """Replay the log, then serve."""
        try:
            _warm_up(self.folder.settings)
            self._open()
            with self._change:
                if self.state == "starting":
                    self.state = "ready"
            self._ready(self.fold.number)
            while self._turn():
                pass
            self._finish_saving()
            if self._since:
                self._snapshot(at_once=True)
            self._log.close()
            self.fold.close()
        except BaseException as error:
            logger.debug("the writer failed", exc_info=True)
            self.failure = error
        finally:
            with self._change:
                self.state = "stopping" if self.failure is None else "failed"
                left, self._works = list(self._works), deque()
            for work in left:
                work.refuse(Problem(503, "the service ends."))
            self.folder.release()
            self._ended()

    def _open(self) -> None:
        self.fold, last = self.folder.fold(self._progress)
        self._log = self.folder.log(self.fold, last)
        self._since = self.fold.number - (self.folder.first or 0)
        self.told = self.fold.noticed

    def _progress(self, number: int) -> None:
        self.replayed = number

    def _turn(self) -> bool:
        """One group; False when it is over."""
        with self._change:
            while not self._works:
                if self.state != "ready":
                    return False
                self._change.wait()
        ends = time.monotonic() + LONGEST
        answered: list[Work] = []
        others: list[Work] = []
        committed: list[bytes] = []
        while self._works and len(committed) < MOST_RECORDS:
            with self._change:
                work = self._works.popleft()
                self.waiting -= work.size
            whole = self._advance(work, committed, ends)
            (answered if whole else others).append(work)
            if time.monotonic() > ends:
                break
        if committed:
            # If this fails nobody knows what the disk has: the process ends, and the next one looks.
            try:
                self._bytes += self._log.append(committed)
            except OSError as error:
                problem = Problem(
                    503, f"the log cannot be written ({error.strerror or error}): ask again later."
                )
                for work in (*answered, *others):
                    work.refuse(problem)
                raise
            self._since += len(committed)
            self.counts["groups"] += 1
        for work in answered:
            work.done(work.answers)
        with self._change:  # behind those that came meanwhile
            self._works.extend(others)
            self.waiting += sum(work.size for work in others)
        if self.fold.noticed != self.told:
            self.told = self.fold.noticed
            self.events_told()
        if self._since >= self.snapshot_every or self._bytes >= MOST_BYTES:
            self._snapshot()
        return True

    def _advance(self, work: Work, committed: list[bytes], ends: float) -> bool:
        """Answer what is left of some work, as far as the group goes; whether that is all of it."""
        if work.question is not None:
            work.answers = [self._told(work.question)]
            return True
        for item in work.records[len(work.answers) :]:
            work.answers.append(item if isinstance(item, Problem) else self._apply(item, committed))
            if len(committed) >= MOST_RECORDS or time.monotonic() > ends:
                break
        return len(work.answers) == len(work.records)

    def _told(self, question: Callable[[Fold], Any]) -> Any:
        try:
            return question(self.fold)
        except Problem as problem:
            return problem
        except KonsError as error:
            return Problem(422, str(error))
        except Exception as error:
            return self._bug(error)

    def _apply(self, record: Record, committed: list[bytes]) -> Any:
        # The clock may go back, the log does not.
        record = Record(record.kind, record.id, max(self.fold.time, time.time()), record.x, record.y)
        packed = encode(record)
        try:
            self._log.reserve(sum(map(len, committed)) + len(packed))
        except OSError as error:
            self.counts["full disk"] += 1
            return Problem(503, f"the log cannot grow ({error.strerror or error}): nothing was learned.")
        try:
            answer, new = self.fold.apply(record)
        except Problem as problem:
            self.counts["refused"] += 1
            return problem
        except Exception as error:
            # No bug: a disk that is full when the learner of a key wakes to forget an identifier.
            is_full = isinstance(error, FileError)
            told = Problem(503, f"{error} Nothing was learned.") if is_full else self._bug(error)
            # It may have stopped between two steps: the model is made of the log again.
            if committed:
                self._log.append(committed)
                committed.clear()
            self._finish_saving()  # it may be cutting what is read now
            self._log.close()
            self.fold.close()
            self._open()
            return told
        if new:
            committed.append(packed)
        else:
            self.counts["repeated"] += 1
        return answer

    def _bug(self, error: Exception) -> Problem:
        self.counts["bugs"] += 1
        logger.error(
            "unexpected %s: %s (a bug: please report it)", type(error).__name__, error, exc_info=error
        )
        return Problem(500, f"unexpected {type(error).__name__} (a bug: please report it).")

    # ---- snapshots

    def _snapshot(self, *, at_once: bool = False, done: Callable[[Any], object] = lambda _: None) -> None:
        """Take one now; it is written beside what goes on, one at a time."""
        if self._saving is not None and self._saving.is_alive():
            done(Problem(503, "a snapshot is being written."))
            return
        try:
            if self._since:
                self._log.begin()
        except OSError as error:
            logger.warning("no snapshot: %s", error)
            done(Problem(503, f"the log cannot grow ({error.strerror or error})."))
            return
        finally:
            self._since = self._bytes = 0
        try:
            save, number = self.folder.capture(self.fold), self.fold.number
        except KonsError as error:  # no room to park learners: the log has it all
            logger.warning("no snapshot: %s", error)
            done(Problem(503, str(error)))
            return

        def write() -> None:
            try:
                size = save(self.keep_log)
                self.counts["snapshots"] += 1
                done({"records": number, "bytes": size})
            except KonsError as error:  # the log has it all
                logger.warning("no snapshot: %s", error)
                done(Problem(503, str(error)))

        if at_once:
            write()
        else:
            self._saving = threading.Thread(target=write, name="kons snapshot")
            self._saving.start()

    def take_snapshot(self, done: Callable[[list[Any]], object]) -> Work:
        """The work of taking a snapshot, answered when it is on the disk."""
        work = Work(lambda answers: None)
        work.question = lambda _: self._snapshot(done=lambda told: done([told]))
        return work

    def _finish_saving(self) -> None:
        if self._saving is not None:
            self._saving.join()


def _warm_up(settings: Settings) -> None:
    """Loops are compiled (half a minute, once for an installation) or read before requests are taken."""
    fold, label = Fold(settings), "label" if settings.task == "classification" else 0.0
    key = {} if settings.key is None else {settings.key: "a"}
    for number in range(30):  # intervals begin behind 20
        fold.apply(Record("predict", number, 0.0, {**key, "warm": float(number)}))
        fold.apply(Record("label", number, 0.0, None, label))
