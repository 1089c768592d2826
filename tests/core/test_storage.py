"""Growing storage: contiguous views, appends that copy, truncation."""

import numpy as np
import pytest

from kons.core.storage import GrowingArray, ObjectStore, VectorStore, point_store


def test_growing_array_grows_and_truncates():
    numbers = GrowingArray()
    for i in range(100):
        numbers.append([float(i)])
        assert len(numbers) == i + 1
    np.testing.assert_array_equal(numbers.view, np.arange(100.0))
    assert numbers.view.flags.c_contiguous
    numbers.truncate(3)
    numbers.append([7.0, 8.0])
    np.testing.assert_array_equal(numbers.view, [0, 1, 2, 7, 8])


def test_growing_array_moves_rarely():
    numbers, buffers = GrowingArray(2), set()
    for _ in range(1000):
        numbers.append([[1.0, 2.0]])
        buffers.add(numbers.view.__array_interface__["data"][0])
    assert len(buffers) <= 10  # by doubling


def test_the_view_is_writable_and_the_appended_is_a_copy():
    numbers, source = GrowingArray(), np.array([1.0, 2.0])
    numbers.append(source)
    source[:] = -1.0
    numbers.view[1] += 10.0
    np.testing.assert_array_equal(numbers.view, [1.0, 12.0])


def test_vector_store():
    store, X = VectorStore(), np.arange(12.0).reshape(4, 3)
    assert len(store) == 0
    assert len(store.view) == 0
    store.append(X[:1])
    store.append_rows(X, np.array([3, 1]))
    X[:] = -1.0
    np.testing.assert_array_equal(store.view, [[0, 1, 2], [9, 10, 11], [3, 4, 5]])
    assert store.view.flags.c_contiguous
    store.truncate(2)
    np.testing.assert_array_equal(store.view, [[0, 1, 2], [9, 10, 11]])


def test_a_vector_store_emptied_takes_any_width():
    store = VectorStore()
    store.append(np.ones((2, 3)))
    store.truncate(0)
    store.append(np.ones((1, 5)))
    assert store.view.shape == (1, 5)


def test_object_store():
    store, points = ObjectStore(), ["a", {"b"}, None, 4]
    store.append(points[:1])
    store.append_rows(points, np.array([3, 2]))
    points[0] = "changed"
    assert store.view == ["a", 4, None]
    store.truncate(1)
    assert (len(store), store.view) == (1, ["a"])


@pytest.mark.parametrize(("accepts", "kind"), [("vectors", VectorStore), ("objects", ObjectStore)])
def test_point_store(accepts, kind):
    assert type(point_store(accepts)) is kind
