"""A learner per key is a learner of its own, whatever is parked; a folder opens as it was committed."""

import copy
import json
import shutil
import struct
import tempfile
import zlib

import numpy as np
import pytest

import effort
import kons
from kons import AutoKONS, EmbeddedKONS, Gaussian, Keyed, Squared
from kons.errors import ConfigurationError, FileError, InputError, KonsError, TargetError
from kons.keyed.record import pack, unpack
from kons.keyed.store import Folder


def stream(rows, keys, seed=0):
    rng = np.random.default_rng(seed)
    X, which = rng.normal(size=(rows, 2)), rng.integers(keys, size=rows)
    records = [
        {"sensor": f"s{k}", "load": float(a), "day": "mon" if b > 0 else "tue"}
        for k, (a, b) in zip(which.tolist(), X.tolist(), strict=True)
    ]
    return records, np.sin(X[:, 0]) + which * (X[:, 1] > 0)


def without_key(record):
    return {name: value for name, value in record.items() if name != "sensor"}


@pytest.mark.parametrize("live", [1, 2, 100])
@pytest.mark.parametrize("where", ["memory", "folder"])
def test_each_key_is_a_learner_of_its_own_bit_for_bit(live, where, tmp_path):
    records, y = stream(240, 4)
    folder = None if where == "memory" else tmp_path / "keys"
    keyed = Keyed(AutoKONS(effort="tiny", seed=3), "sensor", live=live, folder=folder)
    own = {}
    for i, (x, target) in enumerate(zip(records, y.tolist(), strict=True)):
        mine = own.setdefault(x["sensor"], AutoKONS(effort="tiny", seed=3))
        assert keyed.predict_one(x) == mine.predict_one(without_key(x))
        keyed.learn_one(x, target)
        mine.learn_one(without_key(x), target)
        if i == 100:
            keyed = kons.files.from_bytes(kons.files.to_bytes(keyed)) if folder is None else keyed
    assert keyed.awake <= live
    assert len(keyed) == 4
    assert keyed.rows_seen == 240
    bucket = Keyed(AutoKONS(effort="tiny", seed=3), "sensor").resume_bytes(keyed.to_bytes())
    for x in records[:20]:
        assert bucket.predict_one(x) == own[x["sensor"]].predict_one(without_key(x))
    assert bucket.awake == len({x["sensor"] for x in records[:20]})


def test_blocks_agree_with_rows_whatever_is_parked():
    records, y = stream(300, 5)
    predictions = []
    for live in (1, 100):
        keyed = Keyed(AutoKONS(effort="tiny"), "sensor", live=live)
        traces = [keyed.advance(records[i : i + 50], y[i : i + 50]) for i in range(0, 300, 50)]
        predictions.append(np.concatenate([trace.prediction for trace in traces]))
    assert (predictions[0] == predictions[1]).all()
    rows = Keyed(AutoKONS(effort="tiny"), "sensor")
    one_by_one = []
    for x, target in zip(records, y.tolist(), strict=True):
        one_by_one.append(rows.predict_one(x))
        rows.learn_one(x, target)
    assert np.abs(predictions[0] - one_by_one).max() < 1e-6 * np.ptp(y)
    worst, losses = rows.worst(), (np.array(one_by_one) - y) ** 2
    mine = {f"s{k}": losses[[x["sensor"] == f"s{k}" for x in records]].mean() for k in range(5)}
    assert [one.key for one in worst] == sorted(mine, key=lambda key: -mine[key])
    assert worst[0].loss == pytest.approx(max(mine.values()))


def test_frames_and_arrays_have_a_key_column():
    pandas = pytest.importorskip("pandas")
    records, y = stream(60, 3)
    by_dicts = Keyed(AutoKONS(effort="tiny"), "sensor")
    by_frame = Keyed(AutoKONS(effort="tiny"), "sensor")
    told = by_dicts.advance(records, y).prediction
    assert (by_frame.advance(pandas.DataFrame(records), y).prediction == told).all()
    assert (by_frame.predict(pandas.DataFrame(records)) == by_dicts.predict(records)).all()
    X = np.column_stack([np.arange(60) % 3, np.arange(60.0)])
    numbered = Keyed(AutoKONS(effort="tiny"), 0)
    numbered.advance(X, X[:, 0])
    assert numbered.keys == [0, 1, 2]


def test_labels_and_their_probabilities():
    records, y = stream(200, 3)
    labels = np.where(y > np.median(y), "high", "low").tolist()
    keyed = Keyed(AutoKONS("classification", effort="tiny"), "sensor", live=2)
    trace = keyed.advance(records, labels)
    assert sorted(keyed.classes) == ["high", "low"]
    assert trace["scores"].shape == (200, 2)
    shares = keyed.predict_proba(records)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert shares[3] == pytest.approx([keyed.predict_proba_one(records[3])[c] for c in keyed.classes])


@pytest.mark.parametrize("way", ["folder", "bytes", "file"])
@pytest.mark.parametrize("kind", [str, bool, int])
def test_labels_come_back_with_the_records(way, kind, tmp_path):
    records, y = stream(60, 3)
    made = {str: np.where(y > 0.5, "high", "low"), bool: y > 0.5, int: (y > 0.5) + 2 * (y > 1.0)}
    labels = made[kind].tolist()
    learner = AutoKONS("classification", effort="tiny")
    keyed = Keyed(learner, "sensor", folder=tmp_path / "keys" if way == "folder" else None)
    keyed.advance(records, labels)
    shares, classes = keyed.predict_proba(records), keyed.classes
    if way == "folder":
        keyed.close()
        again = Keyed(learner, "sensor", folder=tmp_path / "keys")
    elif way == "bytes":
        again = Keyed(learner, "sensor").resume_bytes(keyed.to_bytes())
    else:
        kons.save(keyed, tmp_path / "keyed.kons")
        again = kons.load(tmp_path / "keyed.kons")
    assert again.awake == 0
    assert sorted(again.classes) == sorted(classes)
    assert all(type(label) is kind for label in again.classes)
    order = [again.classes.index(label) for label in classes]
    assert (again.predict_proba(records)[:, order] == shares).all()


def test_an_error_leaves_all_keys_as_they_were():
    records, y = stream(80, 4)
    keyed = Keyed(AutoKONS(effort="tiny"), "sensor", live=2)
    keyed.advance(records[:40], y[:40])
    before = keyed.to_bytes()
    bad = y[40:].copy()
    bad[-1] = np.nan
    with pytest.raises(InputError):
        keyed.advance(records[40:], bad)
    with pytest.raises(InputError, match=r"row 1 of X.*'sensor' has no value"):
        keyed.advance([records[0], {"load": 1.0}], [0.0, 0.0])
    for nothing in (None, float("nan"), "", 1.5):
        with pytest.raises(InputError, match="expected text or a whole number"):
            keyed.learn_one({"sensor": nothing, "load": 1.0}, 1.0)
    assert keyed.to_bytes() == before
    assert keyed.rows_seen == 40


def test_a_folder_opens_as_it_was_committed(tmp_path):
    records, y = stream(120, 4)
    keyed = Keyed(AutoKONS(effort="tiny"), "sensor", live=1, folder=tmp_path / "keys")
    keyed.advance(records[:60], y[:60])
    for i in range(60, 64):
        keyed.ask(records[i], i)
    keyed.tell(61, y[61])
    keyed.commit(b"the first")
    committed, waits = keyed.to_bytes(), pack(keyed.queue.state())
    with pytest.raises(ConfigurationError, match="used by another"):
        Keyed(AutoKONS(effort="tiny"), "sensor", folder=tmp_path / "keys")
    crashes, commit = [], None
    for i in range(64, 120):  # pages of the commit stay, whatever is parked meanwhile
        keyed.ask(records[i], i)
        keyed.tell(i, y[i])
        if i == 100:
            commit = keyed.capture(b"the second")
            second = keyed.to_bytes(), pack(keyed.queue.state())
        if i % 9 == 0:
            crashes.append(copied(tmp_path, i))
    for crash in crashes:
        again = Keyed(AutoKONS(effort="tiny"), "sensor", folder=crash)
        assert (again.to_bytes(), pack(again.queue.state()), again.about) == (committed, waits, b"the first")
    commit()
    again = Keyed(AutoKONS(effort="tiny"), "sensor", folder=copied(tmp_path, "second"))
    assert (again.to_bytes(), pack(again.queue.state()), again.about) == (*second, b"the second")
    again.tell(60, y[60])
    assert again.queue.ids == [62, 63]


def copied(tmp_path, name):
    """The folder as a crash would leave it now."""
    return shutil.copytree(tmp_path / "keys", tmp_path / f"copy {name}")


def test_a_folder_is_as_large_as_its_records(tmp_path):
    store, random, kept = Folder(tmp_path), np.random.default_rng(0), {}
    for i in range(effort.amount(300, 5000)):
        key, record = f"k{i % 5}", random.bytes(int(random.integers(90_000)))
        store.put(key, record)
        kept[key] = record
        if i % 10 == 0:
            store.delete("k1")
            kept.pop("k1", None)
            store.commit()
    assert (tmp_path / "keys.pages").stat().st_size < 2 * 5 * 95_000
    store.commit(sorted(kept))
    store.close()
    again = Folder(tmp_path)
    assert list(again) == sorted(kept)
    assert {key: again.get(key) for key in again} == kept


def test_a_commit_that_fails_leaves_the_one_before(tmp_path, monkeypatch):
    store = Folder(tmp_path)
    store.put("a", b"one" * 5000)
    store.commit()
    for _ in range(3):
        store.put("a", b"two" * 5000)
        with monkeypatch.context() as context:
            context.setattr("os.replace", full)
            with pytest.raises(FileError, match="No space"):
                store.commit()
    with monkeypatch.context() as context:
        context.setattr("os.pwrite", full)
        with pytest.raises(FileError, match="No space"):
            store.put("a", b"three")
    assert store.get("a") == b"two" * 5000
    store.close()
    assert Folder(tmp_path).get("a") == b"one" * 5000


def full(*_, **__):
    raise OSError(28, "No space left on device")


def test_damaged_folders_are_refused(tmp_path):
    store = Folder(tmp_path / "keys")
    store.put("a", b"one" * 5000)
    store.commit()
    store.close()
    for name, at in (("keys.index", 3), ("keys.index", 25), ("keys.pages", 9000)):
        folder = copied(tmp_path, f"{name} {at}")
        data = bytearray((folder / name).read_bytes())
        data[at] ^= 1
        (folder / name).write_bytes(data)
        with pytest.raises(FileError, match="damaged"):
            Folder(folder).get("a")
    (folder / "keys.pages").write_bytes(b"")
    with pytest.raises(FileError, match="not there"):
        Folder(folder)


def test_many_records_are_on_the_disk(monkeypatch):
    records, y = stream(200, 20)
    monkeypatch.setattr("kons.keyed.store.MOST_IN_MEMORY", 100_000)
    made, make = [], tempfile.TemporaryFile
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **how: made.append(make(**how)) or made[-1])
    keyed, twin = (Keyed(AutoKONS(effort="tiny"), "sensor", live=live) for live in (2, 100))
    assert (keyed.advance(records, y).prediction == twin.advance(records, y).prediction).all()
    assert len(made) == 1
    assert made[0].seek(0, 2) > 200_000
    assert keyed.to_bytes() == twin.to_bytes()
    again = kons.files.from_bytes(kons.files.to_bytes(keyed))
    assert len(made) == 3  # of all records, to be written, and of those that were read
    assert (again.predict(records) == twin.predict(records)).all()
    assert copy.deepcopy(again).to_bytes() == twin.to_bytes()


def test_a_full_disk_learns_nothing(tmp_path, monkeypatch):
    records, y = stream(30, 5)
    keyed = Keyed(AutoKONS(effort="tiny"), "sensor", live=1, folder=tmp_path / "keys")
    keyed.queue.most = 3
    for i in range(20):
        keyed.ask(records[i], i)
        if i % 2:
            keyed.tell(i, y[i])
    before = keyed.to_bytes(), pack(keyed.queue.state())
    with monkeypatch.context() as context:
        context.setattr("os.pwrite", full)
        other = next(x for x in records if x["sensor"] != records[19]["sensor"])
        for call in (
            lambda: keyed.learn_one(other, 1.0),
            lambda: keyed.ask(other, "new"),
            lambda: keyed.advance([other], [1.0]),
        ):
            with pytest.raises(FileError, match="No space"):
                call()
        assert (keyed.to_bytes(), pack(keyed.queue.state())) == before
    keyed.ask(other, "new")
    assert keyed.queue.ids[-1] == "new"
    assert keyed.queue.pending == 3


def test_late_targets_find_their_key():
    records, y = stream(40, 3)
    keyed, own = Keyed(AutoKONS(effort="tiny"), "sensor", live=1), {}
    for i, x in enumerate(records):
        mine = own.setdefault(x["sensor"], AutoKONS(effort="tiny"))
        assert keyed.ask(x, i) == mine.ask(without_key(x), i)
        if i >= 5:
            keyed.tell(i - 5, y[i - 5])
            own[records[i - 5]["sensor"]].tell(i - 5, y[i - 5])
    twin = kons.files.from_bytes(kons.files.to_bytes(keyed))
    twin.tell(39, y[39])
    assert keyed.queue.repeated == 0
    keyed.tell(3, y[3])
    assert keyed.queue.repeated == 1
    with pytest.raises(TargetError, match="was told"):
        keyed.tell(3, y[3] + 1.0)
    keyed.forget(39)
    with pytest.raises(InputError, match="no row waits"):
        keyed.tell(39, 1.0)
    with pytest.raises(InputError, match="waits for key"):
        keyed.ask({**records[38], "sensor": "another"}, 38)
    assert "another" not in keyed


@pytest.mark.parametrize("live", [1, 3])
def test_the_row_that_waits_longest_makes_room_whatever_its_key(live):
    records, y = stream(60, 3)
    keyed, own = Keyed(AutoKONS(effort="tiny"), "sensor", live=live), {}
    keyed.queue.most = 4
    for i, x in enumerate(records):
        mine = own.setdefault(x["sensor"], AutoKONS(effort="tiny"))
        assert keyed.ask(x, i) == mine.ask(without_key(x), i)
        assert keyed.queue.ids == list(range(max(0, i - 3), i + 1))
        if i >= 4:
            own[records[i - 4]["sensor"]].forget(i - 4)
    assert keyed.queue.dropped == 56
    keyed.tell(57, y[57])
    own[records[57]["sensor"]].tell(57, y[57])
    assert keyed.predict_one(records[57]) == own[records[57]["sensor"]].predict_one(without_key(records[57]))


def test_late_targets_leave_the_same_bytes_whatever_is_parked():
    """Rows that wait hold nothing of the rows before them, which a record would not bring back."""
    records, y = stream(120, 4)
    few, all_awake = (Keyed(AutoKONS(effort="tiny"), "sensor", live=live) for live in (1, 4))
    for keyed in (few, all_awake):
        for i, x in enumerate(records):
            keyed.ask(x, i) if i % 3 else keyed.learn_one(x, y[i])
            if i >= 10 and (i - 10) % 3:
                keyed.tell(i - 10, y[i - 10])
    assert few.queue.pending == 7
    assert few.to_bytes() == all_awake.to_bytes()


def test_keys_are_dropped_and_found_idle():
    keyed = Keyed(AutoKONS(effort="tiny"), "sensor", live=1)
    for i in range(30):
        keyed.learn_one({"sensor": "a" if i < 10 else "b", "load": float(i)}, float(i))
    assert keyed.idle(15) == ["a"]
    keyed.drop("a")
    assert keyed.keys == ["b"]
    assert "a" not in keyed
    with pytest.raises(InputError, match="no key 'a'"):
        keyed.summary("a")


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigurationError, match="that predicts"):
        Keyed("auto", "sensor")
    started = AutoKONS(effort="tiny")
    started.learn_one([1.0], 1.0)
    with pytest.raises(ConfigurationError, match="has seen 1 row"):
        Keyed(started, "sensor")
    keyed = Keyed(AutoKONS(effort="tiny"), "sensor", largest=1000)
    keyed.learn_one({"sensor": "a", "load": 1.0}, 1.0)
    with pytest.raises(FileError, match=r"takes [0-9,]+ bytes, at most 1,000.*tiny"):
        keyed.to_bytes()


def test_a_record_of_numbers_that_are_none_is_refused_and_those_of_earlier_versions_are_read():
    learner = EmbeddedKONS(Gaussian(), Squared())
    learner.advance([[0.5], [0.7]], [1.0, 0.5])
    state = learner.state()
    assert type(unpack(pack(state))["quadratics"][0]["totals"].base).__name__ == "FiniteNumbers"
    for poison in (np.nan, np.inf, -np.inf, -1.0):
        state["quadratics"][0]["totals"][0] = poison
        with pytest.raises(FileError, match="totals holds NaN, infinity or a number below 0"):
            EmbeddedKONS.from_state(learner.parameters(), unpack(pack(state)))
    # As earlier versions wrote it: dtype, shape and order of each array, numbers of lists as text.
    tree = {"list": [float(i) for i in range(9)], "array": {"$array": 0}}
    data = json.dumps([tree, [["<f8", [2, 3], "F"]]]).encode() + np.arange(6.0).tobytes()
    told = struct.pack("<4sII", b"kr1\n", zlib.crc32(data), len(data) - 48) + data
    assert unpack(told)["array"].tolist() == np.arange(6.0).reshape(2, 3, order="F").tolist()
    again = unpack(pack(unpack(told)))
    assert again["list"] == tree["list"]
    assert again["array"].flags.f_contiguous


def test_records_that_are_damaged_are_refused():
    learner = EmbeddedKONS(Gaussian(), Squared())
    learner.learn_one([0.5], 1.0)
    record = pack(learner.state())
    assert pack(unpack(record)) == record
    for damaged in (b"", record[:20], record[:-1], record + b"x", b"x" + record[1:]):
        with pytest.raises(FileError):
            unpack(damaged)
    for place in range(0, len(record), 97):
        with pytest.raises(KonsError):
            unpack(record[:place] + bytes([record[place] ^ 1]) + record[place + 1 :])
    bucket = Keyed(AutoKONS(effort="tiny"), "sensor")
    bucket.learn_one({"sensor": "a", "load": 1.0}, 1.0)
    with pytest.raises(FileError, match="bucket"):
        Keyed(AutoKONS(effort="tiny"), "sensor").resume_bytes(bucket.to_bytes()[:-3])


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_of_a_damaged_bucket_nothing_stays(where, tmp_path):
    records, y = stream(60, 3)
    keyed = Keyed(AutoKONS(effort="tiny"), "sensor")
    keyed.advance(records, y)
    data = keyed.to_bytes()
    new = Keyed(AutoKONS(effort="tiny"), "sensor", folder=None if where == "memory" else tmp_path / "keys")
    for damaged in (data[:-1], data[: len(data) // 2], data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]):
        with pytest.raises(FileError, match="damaged or cut short"):
            new.resume_bytes(damaged)
        assert (len(new), new.rows_seen, new.size, new.keys) == (0, 0, 0, [])
    new.resume_bytes(data)
    assert new.rows_seen == 60
    np.testing.assert_array_equal(new.predict(records), keyed.predict(records))
