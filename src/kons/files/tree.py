"""Trees of plain values and known objects as JSON and a list of arrays, and back.

None, True, False, text, small integers, finite floats, lists and dicts are JSON as they are. All else is an
object whose first key begins with a dollar sign::

    {"$int": "0x..."}  {"$float": "nan"}  {"$bytes": base64}  {"$tuple": [...]}  {"$dict": [[key, value]]}
    {"$scalar": [dtype, hex]}  {"$text": numpy.str_}  {"$octets": numpy.bytes_}  {"$array": its number}
    {"$numbers": the number of an array, which was a list of floats}
    {"$object": name in the table, "parameters": {...}, "state": {...}}  {"$given": name}
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kons.errors import ConfigurationError, FileError
from kons.files.archive import DTYPES
from kons.files.registry import build, name_of, parameters_of, state_of
from kons.kernels import Kernel
from kons.losses import Loss
from kons.step_sizes import StepSize

__all__ = ["Decoder", "Encoder"]

OBJECT = "$object"
# Levels of lists, dicts and objects inside each other; an object is two, itself and its parameters.
# Writer and reader count alike, or a file could be written that nothing reads.
DEEPEST = 100
# Floats that are worth an array, where lists of them become arrays.
FEWEST_NUMBERS = 8
FLOATS = {float}
# Integers up to here are the same in every JSON reader.
SMALL = 2**53
# What JSON nests.
NESTED = (list, dict)
LONGEST_INTEGER = 10_000
HEXADECIMAL = re.compile(r"-?0x[0-9a-f]+")
SPECIAL_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class Encoder:
    """Collects the arrays of a tree, and what must be handed in again when it is loaded.

    ``numbers``: longer lists of floats are arrays, too, which take half the room and a tenth of the time.
    """

    def __init__(self, *, numbers: bool = False) -> None:
        self._numbers = numbers
        self.arrays: list[NDArray[Any]] = []
        self.given: dict[str, str] = {}
        """Name -> where in the tree it belongs."""
        self.handed: dict[str, Any] = {}
        """Name -> what must be handed in again."""

    def encode(self, value: Any, where: str = "", depth: int = 0) -> Any:
        """``value`` as what JSON can hold; ``where`` it is, for messages."""
        if depth > DEEPEST:
            place = f"{where[:40]}..." if len(where) > 40 else where or "it"
            raise FileError(f"{place} is nested more than {DEEPEST} levels deep: it cannot be saved.")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if abs(value) < SMALL else {"$int": hex(value)}
        if kind is float:
            return value if value - value == 0.0 else {"$float": repr(value)}
        if kind is bytes:
            return {"$bytes": base64.b64encode(value).decode("ascii")}
        if kind is list:
            if self._numbers and len(value) >= FEWEST_NUMBERS and set(map(type, value)) == FLOATS:
                return {"$numbers": self._array(np.array(value), where)["$array"]}
            return self._sequence(value, where, depth)
        if kind is tuple:
            return {"$tuple": self._sequence(value, where, depth)}
        if kind is dict:
            return self._dict(value, where, depth)
        if kind is np.ndarray:
            return self._array(value, where)
        if isinstance(value, np.generic):
            return self._scalar(value, where)
        if (name := name_of(value)) is not None:
            return self._object(name, value, where, depth)
        if callable(value) or isinstance(value, (Kernel, Loss, StepSize)):
            return self._named_by_user(value, where)
        raise _refused(value, where)

    def _sequence(self, values: Any, where: str, depth: int) -> list[Any]:
        return [self.encode(value, f"{where}[{i}]", depth + 1) for i, value in enumerate(values)]

    def _dict(self, values: dict[Any, Any], where: str, depth: int) -> dict[str, Any]:
        for key in values:
            if type(key) is not str:
                raise FileError(f"{where or 'it'} has the key {key!r}: expected text as keys.")
        escaped = any(key.startswith("$") for key in values)  # as a list of pairs, one level more
        inside = {
            k: self.encode(v, f"{where}.{k}".lstrip("."), depth + 1 + escaped) for k, v in values.items()
        }
        if escaped:
            return {"$dict": [[k, v] for k, v in inside.items()]}
        return inside

    def _array(self, array: NDArray[Any], where: str) -> dict[str, int]:
        if array.dtype.str not in DTYPES:
            raise FileError(
                f"{where} is an array of {array.dtype}: a file holds arrays of numbers, without pickle. "
                "Convert it with astype, or to a list."
            )
        self.arrays.append(array)
        return {"$array": len(self.arrays) - 1}

    def _scalar(self, value: np.generic, where: str) -> dict[str, Any]:
        if isinstance(value, np.str_):
            return {"$text": str(value)}
        if isinstance(value, np.bytes_):
            return {"$octets": base64.b64encode(value).decode("ascii")}
        if value.dtype.str not in DTYPES:
            raise _refused(value, where)
        return {"$scalar": [value.dtype.str, value.tobytes().hex()]}

    def _object(self, name: str, thing: Any, where: str, depth: int) -> dict[str, Any]:
        parameters = self._dict(parameters_of(name, thing), where, depth + 1)
        state = state_of(thing)
        if state is None:
            return {OBJECT: name, "parameters": parameters}
        return {OBJECT: name, "parameters": parameters, "state": self._dict(state, where, depth + 1)}

    def _named_by_user(self, value: Any, where: str) -> dict[str, str]:
        for name, known in self.handed.items():
            if known is value:
                return {"$given": name}
        base = getattr(value, "__name__", type(value).__name__)
        base = base if base.isidentifier() else "function"  # a lambda
        name, count = base, 1
        while name in self.given:
            count += 1
            name = f"{base}_{count}"
        self.given[name], self.handed[name] = where, value
        return {"$given": name}


def _refused(value: Any, where: str) -> FileError:
    return FileError(
        f"{where or 'it'} is a {type(value).__module__}.{type(value).__qualname__}, which a file cannot hold "
        "without pickle, and pickle runs code when it is loaded. It holds numbers, text, bytes, arrays of "
        "numbers, and lists, tuples and dicts of these, so points must be made of them; and the learners, "
        "kernels, losses, policies and step sizes of kons, and those that a line in kons.recipes.RECIPES or "
        "KERNELS has added."
    )


class Decoder:
    """The way back; every array is used once, every object is one of the table."""

    def __init__(
        self, arrays: list[NDArray[Any]], given: Mapping[str, Any], callables: Mapping[str, Any] | None
    ) -> None:
        self._arrays: list[NDArray[Any] | None] = list(arrays)
        self._callables = _handed_in(given, callables or {})

    def decode(self, value: Any, depth: int = 0) -> Any:
        """What :meth:`Encoder.encode` was given."""
        if depth > DEEPEST:
            raise FileError(f"its tree is nested more than {DEEPEST} levels deep.")
        if type(value) is list:
            return [self.decode(item, depth + 1) if type(item) in NESTED else item for item in value]
        if type(value) is not dict:
            return value
        if len(value) == 1 and "$array" in value:
            return self._array(value["$array"])
        if OBJECT in value:
            return self._object(value, depth)
        tag = next(iter(value), "")
        if tag[:1] != "$":
            return {
                key: self.decode(item, depth + 1) if type(item) in NESTED else item
                for key, item in value.items()
            }
        if len(value) != 1 or tag not in TAGS:
            raise FileError(f"its tree holds {tag!r}, which this kons does not know.")
        content = value[tag]
        if tag == "$tuple":
            return tuple(self._list(content, depth))
        if tag == "$dict":
            return self._dict(content, depth)
        if tag == "$numbers":
            return self._array(content).tolist()
        if tag == "$given":
            return self._given(content)
        try:
            return _PLAIN[tag](content)
        except (TypeError, ValueError, KeyError, AttributeError, binascii.Error) as error:
            raise FileError(f"its tree holds a {tag!r} that is none ({error}).") from error

    def finish(self) -> None:
        """Every array must have been used."""
        if any(array is not None for array in self._arrays):
            raise FileError("its tree does not use all of its arrays.")

    def _list(self, content: Any, depth: int) -> list[Any]:
        if not isinstance(content, list):
            raise FileError("its tree holds a tuple or dict that is none.")
        return [self.decode(item, depth + 1) if type(item) in NESTED else item for item in content]

    def _dict(self, content: Any, depth: int) -> dict[str, Any]:
        pairs = self._list(content, depth)
        if not all(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            raise FileError("its tree holds a dict that is none.")
        return {key: item for key, item in pairs}  # noqa: C416 - mypy cannot see pairs in it

    def _array(self, number: Any) -> NDArray[Any]:
        array = self._arrays[number] if type(number) is int and 0 <= number < len(self._arrays) else None
        if array is None:
            raise FileError(f"its tree asks for the array {number!r}, which is not there or already used.")
        self._arrays[number] = None
        return array

    def _given(self, name: Any) -> Any:
        if not isinstance(name, str) or name not in self._callables:
            raise FileError(f"its tree asks for {name!r}, which its document does not list.")
        return self._callables[name]

    def _object(self, value: dict[str, Any], depth: int) -> Any:
        if not {OBJECT, "parameters"} <= value.keys() <= {OBJECT, "parameters", "state"}:
            raise FileError(f"its tree holds a {value[OBJECT]!r} with other parts than it should have.")
        parts = {key: self.decode(value.get(key), depth + 1) for key in ("parameters", "state")}
        return build(value[OBJECT], parts["parameters"], parts["state"])


def _handed_in(given: Mapping[str, Any], callables: Mapping[str, Any]) -> dict[str, Any]:
    missing = [f"{name!r} ({where})" for name, where in given.items() if name not in callables]
    if missing:
        raise FileError(
            f"it needs what a file cannot hold: {', '.join(missing)}. Hand it in again by name: "
            f"kons.load(path, callables={{{next(n for n in given if n not in callables)!r}: ...}})."
        )
    for name in given:
        if not (callable(callables[name]) or isinstance(callables[name], (Kernel, Loss, StepSize))):
            raise ConfigurationError(f"callables[{name!r}] is {callables[name]!r}, expected a function.")
    return {name: callables[name] for name in given}


def _integer(text: Any) -> int:
    if len(text) > LONGEST_INTEGER or not HEXADECIMAL.fullmatch(text):
        raise ValueError("no hexadecimal integer")
    return int(text, 16)


def _scalar(content: Any) -> Any:
    dtype, text = content
    data = bytes.fromhex(text)
    if dtype not in DTYPES or len(data) != np.dtype(dtype).itemsize:
        raise ValueError("no number of this type")
    return np.frombuffer(data, dtype)[0]


def _text(content: Any) -> np.str_:
    if not isinstance(content, str):
        raise TypeError("no text")
    return np.str_(content)


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "$int": _integer,
    "$float": lambda word: SPECIAL_FLOATS[word],
    "$bytes": lambda text: base64.b64decode(text, validate=True),
    "$octets": lambda text: np.bytes_(base64.b64decode(text, validate=True)),
    "$scalar": _scalar,
    "$text": _text,
}
TAGS = frozenset({*_PLAIN, "$tuple", "$dict", "$array", "$numbers", "$given"})
