"""The model of a service is a fold over its log: refereed by the same records put to a learner by hand."""

import contextlib
import struct
import tempfile
import threading
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import effort
from kons import Keyed
from kons.files import from_bytes, read_tree, save, to_bytes
from kons.recipes import for_task
from kons.serve.fold import SNAPSHOT, Fold, Settings
from kons.serve.folder import ServiceFolder
from kons.serve.log import Log, Record, Segment, encode
from kons.serve.problems import Problem
from serve.arrivals import arrivals

DAY = 86_400.0


def records(count, seed=0, **options):
    return [
        Record(kind, body["id"], float(i), body.get("x"), body.get("y"))
        for i, (kind, body) in enumerate(arrivals(count, seed, **options))
    ]


def by_hand(learner, log):
    """The bytes of a learner to which the records of a log were put, read without kons.serve."""
    data = log.read_bytes()
    at = 32
    while data[at : at + 4].strip(b"\0"):
        (length,) = struct.unpack_from("<I", data, at + 4)
        for kind, id, _, x, y in msgspec.msgpack.decode(data[at + 12 : at + 12 + length]):
            if kind == "predict":
                learner.ask(x, id)
            elif kind == "label":
                learner.tell(id, y)
            else:
                learner.learn_one(x, y)
        at += 12 + length
    return to_bytes(learner)


def served(tmp_path, all_records, settings, *, restart=(), snapshot=()):
    """The folder and the fold after these records, in groups, with restarts and snapshots in between."""
    folder = ServiceFolder.begin(tmp_path / "service", settings, None)
    fold, last = folder.fold()
    log = folder.log(fold, last)
    for i, record in enumerate(all_records):
        if fold.apply(record)[1]:
            packed = encode(record)
            log.reserve(len(packed))
            log.append([packed])
        if i in snapshot:
            log.begin()
            folder.capture(fold)(True)
        if i in restart:
            log.close()
            fold.close()
            folder.release()
            folder = ServiceFolder.open(tmp_path / "service")
            fold, last = folder.fold()
            log = folder.log(fold, last)
    log.close()
    return folder, fold


@pytest.mark.parametrize(
    ("learner", "labels"),
    effort.some(
        [("auto", False), ("auto", True), ("embedded", False), ("embedded", True)],
        ("auto", True),
        ("embedded", False),
    ),
)
def test_restarts_and_snapshots_change_no_bit(tmp_path, learner, labels):
    task = "classification" if labels else "regression"
    settings = Settings(learner=learner, task=task)
    all_records = records(effort.amount(130, 3000), labels=labels)
    cuts = {"restart": (50, 120, 121, 300), "snapshot": (100, 200)}
    folder, fold = served(tmp_path, all_records, settings, **cuts)
    whole = tmp_path / "whole.log"
    logs = sorted((tmp_path / "service" / "log").iterdir())
    assert len(logs) == 3
    whole.write_bytes(bytes(32) + b"".join(log.read_bytes()[32:] for log in logs))
    expected = by_hand(for_task(task, learner), whole)
    assert to_bytes(fold.model) == expected
    assert to_bytes(folder.fold(from_start=True)[0].model) == expected
    assert fold.counts["labelled"] + fold.counts["learned"] == fold.learner.rows_seen
    pending = fold.counts["predicted"] - fold.counts["labelled"]
    assert fold.learner.queue.pending == pending


@pytest.mark.parametrize(
    ("labels", "task"), [(False, "regression"), (True, "classification"), (False, "auto"), (True, "auto")]
)
def test_restarts_and_snapshots_change_no_bit_of_many_keys(tmp_path, monkeypatch, labels, task):
    monkeypatch.setattr("kons.serve.fold.LIVE", 2)
    settings = Settings(key="key", task=task, pending=20)
    count = effort.amount(90, 2000)
    all_records = records(count, labels=labels, keys=5)
    if task == "auto":  # several wait before it is known what the labels are
        all_records.sort(key=lambda record: (record.kind != "predict" or record.id > 9, record.time))
    cuts = {"restart": (5, 50, 120, 121), "snapshot": (3, 30, 100, 110)}
    folder, fold = served(tmp_path, all_records, settings, **cuts)
    whole = tmp_path / "whole.log"
    logs = sorted((tmp_path / "service" / "log").iterdir())
    assert len(logs) == 5
    whole.write_bytes(bytes(32) + b"".join(log.read_bytes()[32:] for log in logs))
    learner = for_task("classification" if labels else "regression", "auto", effort="tiny")
    keyed = Keyed(learner, "key", live=2, largest=1 << 30)
    keyed.queue.most = 20
    expected = by_hand(keyed, whole)
    assert to_bytes(fold.model) == expected
    again = folder.fold(from_start=True)[0]
    assert to_bytes(again.model) == expected
    assert len(fold.learner) == 5
    assert fold.learner.awake == 2
    counts = fold.counts
    assert counts["labelled"] + counts["learned"] == fold.learner.rows_seen
    assert counts["predicted"] - counts["labelled"] == fold.learner.queue.pending + fold.learner.queue.dropped
    assert fold.monitor.losses() == again.monitor.losses()
    assert set(fold.monitor.losses()) == {"model", "constant", "persistence"}
    again.close()
    fold.close()
    folder.release()


def test_a_saved_model_of_many_keys_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("kons.serve.fold.LIVE", 2)
    keyed = Keyed(for_task("regression", "auto", effort="tiny"), "key")
    for record in records(60, keys=4):
        if record.kind == "predict":
            keyed.ask(record.x, record.id)
        elif record.kind == "label":
            keyed.tell(record.id, record.y)
        else:
            keyed.learn_one(record.x, record.y)
    save(keyed, tmp_path / "model.kons")
    folder = ServiceFolder.begin(tmp_path / "service", Settings(), tmp_path / "model.kons")
    assert folder.settings.key == "key"
    fold, waits = folder.fold()[0], keyed.queue.ids[0]
    for again in (False, True):
        if again:
            folder.capture(fold)(True)
            fold.close()
            fold = folder.fold()[0]
        x = {"key": "k1", "a": 0.5, "b": 0.1, "c": "u", "d": 0.2}
        assert fold.apply(Record("predict", str(again), 0.0, x))[0]["prediction"] == keyed.predict_one(x)
        assert fold.learner.awake <= 2
    fold.apply(Record("label", waits, 0.0, None, 1.0))
    keyed.tell(waits, 1.0)
    for id in ("False", "True"):
        keyed.ask(x, id)
    fold.learner.commit()
    assert fold.learner.to_bytes() == keyed.to_bytes()
    fold.close()
    folder.release()


def test_keys_are_asked_for_and_refused_in_words(tmp_path):
    folder = ServiceFolder.begin(
        tmp_path / "service", Settings(key="key", task="regression", columns=3), None
    )
    fold, _ = folder.fold()
    for i in range(12):
        fold.apply(Record("learn", None, 0.0, {"key": i % 2, "a": float(i)}, float(i)))
    before = to_bytes(fold.model)
    for x in ({"a": 1.0}, {"key": None, "a": 1.0}, {"key": "", "a": 1.0}, {"key": True, "a": 1.0}, [1.0]):
        for kind, id, y in (("predict", "x", None), ("learn", None, 1.0)):
            with pytest.raises(Problem) as error:
                fold.apply(Record(kind, id, 0.0, x, y))
            assert error.value.status == 422
            assert error.value.column == "key"
    with pytest.raises(Problem, match="'d' is more"):
        fold.apply(Record("predict", "x", 0.0, {"key": 1, "a": 1.0, "b": 1.0, "c": 1.0, "d": 1.0}))
    assert to_bytes(fold.model) == before
    fold.apply(Record("predict", "one", 0.0, {"key": 1, "a": 1.0}))
    assert refused(fold, Record("predict", "one", 0.0, {"key": 0, "a": 1.0})) == 409
    assert fold.explain({"key": 1, "a": 3.0}, None, 1)["contributions"].keys() == {"a", "last targets"}
    fold.close()
    folder.release()


def test_a_full_disk_teaches_no_key(tmp_path, monkeypatch):
    monkeypatch.setattr("kons.serve.fold.LIVE", 1)
    folder = ServiceFolder.begin(tmp_path / "service", Settings(key="key", task="regression"), None)
    fold, _ = folder.fold()
    for i in range(9):
        fold.apply(Record("predict", i, 0.0, {"key": i % 3, "a": float(i)}))
    before = fold.to_bytes(), to_bytes(fold.model)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr("os.pwrite", full)
        for record in (
            Record("label", 0, 1.0, None, 1.0),
            Record("learn", "n", 1.0, {"key": 0, "a": 1.0}, 1.0),
            Record("predict", "n", 1.0, {"key": "new", "a": 1.0}),
        ):
            assert refused(fold, record) == 503
    assert (fold.to_bytes(), to_bytes(fold.model)) == before
    assert fold.apply(Record("label", 0, 1.0, None, 1.0))[1]
    fold.close()
    folder.release()


def test_a_snapshot_is_the_whole_state():
    fold = Fold(Settings(task="regression", learner="embedded"))
    first, second = records(80), records(80, seed=7)[:60]
    second = [Record(r.kind, f"second {r.id}", r.time + 1000.0, r.x, r.y) for r in second]
    for record in first:
        fold.apply(record)
    tree = from_tree(fold.to_bytes())
    twin = Fold.of(fold.settings, tree)
    for record in second:
        assert twin.apply(record) == fold.apply(record)
    assert twin.to_bytes() == fold.to_bytes()
    assert twin.monitor.losses() == fold.monitor.losses()
    assert set(fold.monitor.losses()) == {"model", "constant", "persistence", "linear"}


def from_tree(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        path.write_bytes(data)
        return read_tree(path, kind=SNAPSHOT)


def refused(fold, record):
    before = to_bytes(fold.model)
    with pytest.raises(Problem) as error:
        fold.apply(record)
    assert to_bytes(fold.model) == before
    return error.value.status


def test_the_same_again_is_answered_again_and_another_is_refused():
    fold = Fold(Settings(task="regression", learner="embedded"))
    asked, answer = Record("predict", "a", 0.0, {"x": 1.0}), None
    answer, new = fold.apply(asked)
    assert new
    assert fold.apply(asked) == (answer, False)
    assert refused(fold, Record("predict", "a", 1.0, {"x": 2.0})) == 409
    assert refused(fold, Record("label", "b", 1.0, None, 1.0)) == 404
    assert refused(fold, Record("label", "a", 1.0, None, "text")) == 422
    assert fold.apply(Record("label", "a", 1.0, None, 3.0)) == ({"id": "a", "already": False, "row": 1}, True)
    assert fold.apply(Record("label", "a", 2.0, None, 3.0)) == ({"id": "a", "already": True, "row": 1}, False)
    assert refused(fold, Record("label", "a", 2.0, None, 4.0)) == 409
    assert fold.apply(asked) == (answer, False)
    learn = Record("learn", "c", 3.0, {"x": 1.0}, 1.0)
    assert fold.apply(learn) == ({"id": "c", "already": False, "row": 2}, True)
    assert fold.apply(learn) == ({"id": "c", "already": True, "row": 2}, False)
    assert refused(fold, Record("learn", "c", 3.0, {"x": 2.0}, 1.0)) == 409
    assert refused(fold, Record("predict", "c", 3.0, {"x": 1.0})) == 409
    assert fold.learner.rows_seen == 2
    assert fold.learner.queue.repeated == 0  # the learner never met the second ones


def test_learning_a_row_that_waits_is_its_label():
    fold = Fold(Settings(task="regression", learner="embedded"))
    fold.apply(Record("predict", "a", 0.0, {"x": 1}))
    assert fold.apply(Record("learn", "a", 0.0, {"x": 1.0}, 2.0))[1]
    assert fold.apply(Record("label", "a", 0.0, None, 2.0))[0]["already"]
    assert (fold.learner.rows_seen, fold.learner.queue.pending) == (1, 0)


@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from(["predict", "label", "learn"])), max_size=60))
@effort.examples(25)
def test_all_counts_add_up(requests):
    fold = Fold(Settings(task="regression", learner="embedded", pending=3, remember=6))
    for i, (id, kind) in enumerate(requests):
        x = None if kind == "label" else {"x": float(id)}
        y = None if kind == "predict" else float(id)
        with contextlib.suppress(Problem):  # unknown, or in conflict
            fold.apply(Record(kind, id, float(i), x, y))
        counts, queue = fold.counts, fold.learner.queue
        assert counts["labelled"] + counts["learned"] == (fold.learner.rows_seen or 0)
        gone = counts["labelled"] + queue.pending + queue.dropped + counts["forgotten"]
        assert counts["predicted"] == gone
        assert queue.pending <= 3
        assert len(fold.ids) <= 6
    assert fold.number == sum(fold.counts[name] for name in ("predicted", "labelled", "learned"))


def test_ids_are_remembered_for_so_many_days():
    fold = Fold(Settings(task="regression", learner="embedded", days=1.0))
    fold.apply(Record("predict", "a", 0.0, {"x": 1.0}))
    fold.apply(Record("predict", "b", 0.9 * DAY, {"x": 1.0}))
    fold.apply(Record("predict", "c", 1.1 * DAY, {"x": 1.0}))
    assert refused(fold, Record("label", "a", 1.1 * DAY, None, 1.0)) == 404
    assert fold.counts["forgotten"] == 1
    assert fold.apply(Record("label", "b", 1.1 * DAY, None, 1.0))[1]


def test_what_is_noticed_of_late_labels_is_told():
    fold = Fold(Settings(task="regression"))
    for i in range(600):
        value = 9.0 if i == 560 else (0.618 * i) % 1.0
        fold.apply(Record("predict", i, 0.0, {"x": value}))
        fold.apply(Record("label", i, 0.0, None, value))
    told = {(event["kind"], event["row"]) for _, event in fold.events}
    assert {("out of range", 560), ("target out of range", 560)} <= told
    assert [number for number, _ in fold.events] == list(range(1, len(fold.events) + 1))


@pytest.mark.parametrize(
    ("label", "task"), [("up", "classification"), (True, "classification"), (1, "regression")]
)
def test_the_first_label_says_what_the_task_is(label, task):
    fold = Fold(Settings(learner="embedded"))
    told = [fold.apply(Record("predict", id, 0.0, {"x": float(id)}))[0] for id in range(4)]
    assert [answer["prediction"] for answer in told] == [None] * 4
    assert not fold.decided
    fold = Fold.of(fold.settings, from_tree(fold.to_bytes()))  # stopped before the first label
    fold.apply(Record("label", 2, 1.0, None, label))
    twin = for_task(task, "embedded")
    for id in range(4):
        twin.ask({"x": float(id)}, id)
    twin.tell(2, label)
    assert to_bytes(fold.model) == to_bytes(twin)


def test_columns_beyond_the_limit_are_named():
    fold = Fold(Settings(task="regression", learner="embedded", columns=2))
    fold.apply(Record("learn", None, 0.0, {"a": 1.0, "b": 1.0}, 1.0))
    with pytest.raises(Problem, match="'c' is more") as error:
        fold.apply(Record("predict", "x", 0.0, {"a": 1.0, "c": 1.0}))
    assert error.value.column == "c"


# ---- the log


def log_of(folder, groups):
    log = Log(folder, 0)
    log.begin()
    ends = []
    for group in groups:
        packed = [encode(Record("label", id, 0.0, None, 1.1)) for id in group]
        log.reserve(sum(map(len, packed)))
        ends.append(log.append(packed) + (ends[-1] if ends else 32))
    log.close()
    return folder / "000000000000.log", ends


def ids_in(path, *, last=True):
    segment = Segment(path, last=last)
    return [record.id for _, record in segment], segment


def test_a_torn_tail_is_cut_wherever_it_ends(tmp_path):
    path, ends = log_of(tmp_path, [["a", "b"], ["c"], ["d", "e", "f"]])
    data = path.read_bytes()
    assert ids_in(path)[0] == list("abcdef")
    for end in range(ends[1], len(data)):
        for rest in (b"", bytes(100)):  # with and without room that was reserved
            path.write_bytes(data[:end] + rest)
            found, segment = ids_in(path)
            assert found == list("abc")
            assert segment.end == ends[1]
    with pytest.raises(ValueError, match="does not match its checksum"):
        ids_in(path, last=False)


def test_what_is_broken_in_front_of_others_is_refused_by_name(tmp_path):
    path, ends = log_of(tmp_path, [["a", "b"], ["c"], ["d", "e", "f"]])
    data = path.read_bytes()
    random = np.random.default_rng(0)
    for at in random.permutation(ends[1])[: effort.amount(40, ends[1])].tolist():
        broken = bytearray(data)
        broken[at] ^= 1 << int(random.integers(8))
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=r"000000000000\.log, byte"):
            ids_in(path)


def test_a_client_cannot_write_what_looks_like_a_frame(tmp_path):
    """A torn group that holds a whole one of another log is cut all the same."""
    (tmp_path / "other").mkdir()
    other, ends = log_of(tmp_path / "other", [["x"]])
    frame = other.read_bytes()[32 : ends[0]]
    path, ends = log_of(tmp_path, [["a"], ["b"]])
    path.write_bytes(path.read_bytes()[: ends[0]] + b"\xf5KG\n torn " + frame)
    assert ids_in(path)[0] == ["a"]


def test_records_that_are_missing_are_refused(tmp_path):
    settings = Settings(task="regression", learner="embedded")
    folder, _ = served(tmp_path, records(40), settings, snapshot=(10, 20))
    folder.release()
    (tmp_path / "service" / "log" / "000000000011.log").unlink()
    (tmp_path / "service" / "snapshot.kons").unlink()
    folder = ServiceFolder.open(tmp_path / "service")
    with pytest.raises(ValueError, match="records 11 to 20 are missing"):
        folder.fold()
    folder.release()


def test_a_model_goes_on_from_its_file(tmp_path):
    learner = for_task("regression", "embedded")
    for record in records(60):
        if record.kind == "learn":
            learner.learn_one(record.x, record.y)
    twin = from_bytes(to_bytes(learner))
    fold = Fold(Settings(), twin)
    x = {"a": 0.5, "b": 0.1, "c": "u", "d": 0.2}
    answer = fold.apply(Record("predict", 1, 0.0, x))[0]
    assert answer["prediction"] == learner.predict_one(x)
    assert answer["row"] == learner.rows_seen


def test_a_label_that_is_refused_decides_nothing():
    fold = Fold(Settings(learner="embedded"))
    fold.apply(Record("predict", "a", 0.0, {"v": 1.0}))
    before = fold.to_bytes()
    assert refused(fold, Record("learn", None, 0.0, [1.0, 2.0, 3.0], "text"))
    assert not fold.decided
    assert fold.to_bytes() == before
    fold.apply(Record("label", "a", 1.0, None, "text"))
    assert fold.decided
    assert refused(fold, Record("learn", None, 0.0, {"v": 1.0}, 7.5)) == 422  # labels are text


@pytest.mark.parametrize("learner", ["embedded", "auto"])
def test_numbers_at_the_end_of_the_range_are_learned_or_refused(learner):
    fold = Fold(Settings(task="regression", learner=learner))
    for i, value in enumerate([1e308, -1e308, 1e200, 5e-324, 2.0**53, 1e155, 0.0] * 4):
        for record in (
            Record("learn", None, float(i), {"v": value}, 1.0),
            Record("learn", None, float(i), {"v": 1.0}, value),
            Record("predict", i, float(i), {"v": value}),
            Record("label", i, float(i), None, -value),
        ):
            with contextlib.suppress(Problem):
                fold.apply(record)
    assert all(np.isfinite(loss) for loss in fold.monitor.losses().values())
    assert Fold.of(fold.settings, from_tree(fold.to_bytes())).to_bytes() == fold.to_bytes()


def test_a_row_without_names_is_explained():
    fold = Fold(Settings(task="regression", learner="embedded"))
    for i in range(10):
        fold.apply(Record("learn", None, 0.0, [float(i), 1.0], float(i)))
    told = fold.explain([3.0, 1.0], None, 1)
    assert len(told["contributions"]) == 2


def test_time_does_not_go_back(tmp_path, monkeypatch):
    from kons.serve.writer import Work, Writer

    def one(id, at):
        monkeypatch.setattr("time.time", lambda: at)
        path, ready = tmp_path / "service", threading.Event()
        folder = (
            ServiceFolder.open(path)
            if path.exists()
            else ServiceFolder.begin(path, Settings(task="regression", learner="embedded"), None)
        )
        writer = Writer(folder, ready=lambda _: ready.set())
        writer.start()
        ready.wait()
        writer.submit(Work(lambda _: None, [Record("predict", id, 0.0, {"v": 1.0})]))
        writer.stop()
        return writer.fold.time

    assert [one("a", 5e9), one("b", 1e9), one("c", 6e9)] == [5e9, 5e9, 6e9]
