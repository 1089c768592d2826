"""A generator of untidiness: files as people have them, and what is to be counted in each.

A clean table is made up, and spoiled: gaps of all spellings, cells that are no such thing, columns that begin
late or never, numbers and dates in every style, lines that are too short. Some are to be read through a pipe,
with lags, in order of time, or without rows that have gaps. What becomes of each cell is known, and so are
the counts; nothing here asks the readers. ``choices`` is a ``random.Random``, or Hypothesis's.
"""

import bz2
import datetime
import gzip
import io
import json
import lzma
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

LOOK = 1000  # rows by which it is decided what a column holds
GAP, BAD = object(), object()

NUMBER_GAPS = ("", "NA", "n/a", "NaN", "null", "?", "-", "none", "nil", "#N/A", "-nan", "  ", "Null", "N/A")
TEXT_GAPS = ("", "NA", "n/a", "nan", "NULL", "?", "#N/A", "  ", "Na")
SAID = ("-999", "unknown", "not given")  # what --na-values names
BAD_NUMBERS = ("oops", "inf", "1e999", "-Infinity", "5 apples", "1_000", "--3", "see note", "12:30")
BAD_DATES = ("oops", "2024-02-31", "99/99/9999", "later", "32 Mar 2020")
WORDS = (
    "red", "Zürich", "it's", "two words", "semi;colon", "a, b", "bar|bar", "tab\there", 'say "no"', "x]{",
    "line\nbreak", "#7 lane", "100 %!", "naïve", "-x-", "über€",
)  # fmt: skip


@dataclass
class Column:
    """Values that are known, some of them replaced by GAP or BAD, and how each is written as text."""

    kind: str  # number, text, flag or date
    values: list[Any]
    write: Any = str
    plain: bool = True
    """Whether a typed format (JSON, Parquet) can hold it as what it is."""
    name: str = ""


@dataclass
class Untidy:
    """A file, how it is to be opened, and what a reading to the end must count."""

    path: Path
    options: dict[str, Any]
    every_line: list[int]
    """Where a row begins, whatever can be read of it."""
    lines: list[int]
    """Of rows that count."""
    targets: list[Any]
    skipped: dict[str, int]
    gaps: dict[str, int]
    bad_cells: dict[str, int]
    numbers: dict[str, list[float]]
    """Of columns of numbers that the first rows show, the values of rows that count, NaN for a gap."""
    used: set[str]
    """The columns that become features."""
    piped: bool = False
    """Whether it is to come through standard input."""
    about: dict[str, Any] = field(default_factory=dict)
    """What was chosen, to find a case again."""


def untidy_file(choices, folder, *, sizes=(12, 60, 300, 1200, 1300, 5600)):
    """A file with every untidiness that its format allows, each with some chance."""
    rows = choices.choice(sizes)
    rng = np.random.default_rng(choices.getrandbits(32))
    form = choices.choice(("delimited",) * 6 + ("jsonl", "json", "jsonl", "libsvm", "arff", "parquet"))
    table = Table(choices, rng, rows, form)
    found = WRITERS[form](table, Path(folder))
    found.options |= table.asked()
    if form != "parquet" and found.path.suffix != ".zip" and table.chance(0.25):
        found.piped = True
        found.options["format"] = {"delimited": "csv", "json": "jsonl"}.get(form, form)  # a pipe has no name
    found.about |= {"options": found.options, "piped": found.piped}
    found.about |= {"rows": rows, "form": form, "columns": [(c.name, c.kind) for c in table.columns]}
    return found


# ---- columns


class Table:
    """The cells, before they are written."""

    def __init__(self, choices, rng, rows, form):
        self.choices, self.rng, self.rows, self.form = choices, rng, rows, form
        self.typed = form in ("jsonl", "json", "parquet")
        self.na_values = form != "libsvm" and choices.random() < 0.3
        self.columns = [self._numbers("plain")]
        if form == "libsvm":
            self.columns += [self._numbers("plain") for _ in range(choices.randint(0, 3))]
        else:
            makers = [self._numbers, self._text, self._flag, self._date, self._counter, self._empty]
            for _ in range(choices.randint(1, 6)):
                self.columns.append(choices.choice([*makers, self._numbers, self._text, self._date])())
            for column in self.columns[1:]:
                self._spoil(column)
        self.target = self._target()
        self.time = self._time() if form != "libsvm" and self.chance(0.2) else None
        self.columns += [self.time] if self.time is not None else []
        self.lags = self._lags() if self.chance(0.25) else []
        self.missing = "skip" if self.chance(0.2) else "fill"
        self._name()

    def chance(self, share):
        """Whether it is to be."""
        return self.choices.random() < share

    def _numbers(self, style=None):
        rng, rows = self.rng, self.rows
        styles = ["plain", "whole", "mostly zero", "identities"]
        if not (self.typed or self.form == "arff"):
            styles += [
                "thousands",
                "thousands",
                "currency",
                "percent",
                "comma",
                "comma",
                "apostrophe",
                "space",
            ]
            styles += ["parentheses", "continental"]
        style = style or self.choices.choice(styles)
        if style == "plain":
            values = np.round(rng.normal(0.0, 10.0 ** rng.integers(-1, 4), rows), 4).tolist()
            return Column("number", values, self.choices.choice((repr, "{:.12e}".format, "{:+.4f}".format)))
        if style == "whole":
            return Column("number", rng.integers(-5, 40, rows).astype(float).tolist(), "{:.0f}".format)
        if style == "mostly zero":
            values = np.where(rng.random(rows) < 0.7, 0.0, rng.integers(1, 5, rows)).tolist()
            return Column("number", values, "{:g}".format)
        if style == "identities":
            values = rng.permutation(10 * rows + 100)[:rows].astype(float).tolist()
            return Column("number", values, "{:.0f}".format)
        cents = (rng.integers(100_000, 500_000_000, rows) / 100).tolist()
        if style == "parentheses":
            values = (np.array(cents) * rng.choice([-1, 1], rows)).tolist()
            return Column("number", values, lambda v: f"(${-v:,.2f})" if v < 0 else f"${v:,.2f}", False)
        signs = {"thousands": ",.", "comma": None, "apostrophe": "'.", "space": " ,", "continental": ".,"}
        sign = self.choices.choice(("$", "£", "€ ", "USD "))
        if style == "currency":
            return Column("number", cents, lambda v: f"{sign}{v:.2f}", False)
        if style == "percent":
            values = (rng.integers(0, 1000, rows) / 10).tolist()
            return Column("number", values, lambda v: f"{v:.1f} %", False)
        if style == "comma":
            values = (rng.integers(-999, 1000, rows) / 10).tolist()
            return Column("number", values, lambda v: f"{v:.1f}".replace(".", ","), False)
        between, point = signs[style]

        def grouped(value):
            return f"{value:,.2f}".replace(",", "_").replace(".", point).replace("_", between)

        return Column("number", cents, grouped, False)

    def _text(self):
        rng, rows = self.rng, self.rows
        sort = self.choices.choice(("few", "few", "many", "new", "identities"))
        if sort == "few":
            words = self.choices.sample(WORDS, self.choices.randint(2, len(WORDS)))
            if self.form in ("parquet", "arff"):
                words = [word.replace("\n", " ").replace("'", "").replace("%", "") for word in words]
            values = [words[i] for i in rng.integers(0, len(words), rows)]
        elif sort == "many":
            values = [f"level {int(i)}x" for i in 90 * rng.random(rows) ** 2]
        elif sort == "new":
            values = [f"kind {int(i)}x" for i in rng.random(rows) * (1 + np.arange(rows) / 40.0)]
        else:
            values = [f"name {i}x" for i in rng.permutation(rows)]
        if rows > 2 and sort != "identities":
            values[1] = values[0]  # they do come again
        return Column("text", values)

    def _flag(self):
        yes, no = self.choices.choice((("yes", "no"), ("True", "false"), ("TRUE", "FALSE"), ("Yes", "NO")))
        values = (self.rng.random(self.rows) < 0.5).tolist()
        return Column("flag", values, lambda flag: yes if flag else no)

    def _date(self):
        rng, rows = self.rng, self.rows
        begin = datetime.datetime(2015, 1, 1)
        values = [begin + datetime.timedelta(minutes=int(m)) for m in rng.integers(0, 4_000_000, rows)]
        if self.form in ("parquet", "jsonl", "json"):
            written = self.choices.choice(("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%d.%m.%Y %H:%M"))
            return Column("date", values, lambda moment: moment.strftime(written))
        style = self.choices.choice(DATES)
        written, name = style if isinstance(style, tuple) else (style, "")
        if callable(written):
            return Column("date", values, written, name=name)
        return Column("date", values, lambda moment: moment.strftime(written))

    def _counter(self):
        return Column("number", [float(i + 1) for i in range(self.rows)], "{:.0f}".format)

    def _time(self):
        """Never going back; as a number it is no feature."""
        minutes = np.cumsum(self.rng.integers(0, 300, self.rows)).tolist()
        if self.chance(0.5):
            return Column("number", [float(m) for m in minutes], "{:.0f}".format)
        values = [datetime.datetime(2019, 12, 30) + datetime.timedelta(minutes=m) for m in minutes]
        return Column("date", values, lambda moment: moment.strftime("%Y-%m-%d %H:%M"))

    def _lags(self):
        """(column, rows back): of numbers that are there from the first rows on; yes and no are labels."""
        begun = [column for column in self.columns if column.kind in ("number", "flag")
                 and any(value not in (GAP, BAD) for value in column.values[:5])]  # fmt: skip
        begun += [self.target] if self.target.kind == "number" else []
        chosen = self.choices.sample(begun, self.choices.randint(1, min(2, len(begun))))
        return [(column, back) for column in chosen for back in self.choices.sample((1, 2, 5), 2)]

    def _empty(self):
        return Column("text", [GAP] * self.rows)

    def _target(self):
        rng, rows = self.rng, self.rows
        sorts = ["number"] if self.form == "libsvm" else ["number", "number", "text", "flag", "two"]
        sort = self.choices.choice(sorts)
        if sort == "number":
            column = self._numbers(None if self.choices.random() < 0.5 and self.form != "libsvm" else "plain")
            column.values[:3] = [column.values[0], *(column.values[0] + k for k in (1.0, 2.0))][:rows]
        elif sort == "text":
            column = Column("text", [("up", "down", "side ways")[i] for i in rng.integers(0, 3, rows)])
        elif sort == "flag":
            column = self._flag()
        else:
            column = Column("number", rng.integers(0, 2, rows).astype(float).tolist(), "{:.0f}".format)
        if sort != "number":
            column.values[:2] = [("up", "down"), (True, False), (0.0, 1.0)][
                ("text", "flag", "two").index(sort)
            ]
        if self.form != "libsvm" and self.chance(0.6):
            for row in rng.integers(3, rows, max(1, rows // 30)):  # its first values are there
                column.values[row] = GAP
        return column

    # ---- spoiling

    def _spoil(self, column):
        """Late, with gaps, with cells that are no such thing: behind the rows by which kinds are decided."""
        rng, rows = self.rng, self.rows
        if all(value is GAP for value in column.values) or column.values == list(range(1, rows + 1)):
            return
        start = self.choices.choice((0, 0, 0, 1, 7, 900, 4999))
        late = start if start < rows - 20 else 0
        column.values[:late] = [GAP] * late
        if self.chance(0.7):
            for row in late + np.flatnonzero(rng.random(rows - late) < self.choices.choice((0.01, 0.1, 0.3))):
                if row > late + 2:
                    column.values[row] = GAP
        allowed = column.kind in ("number", "date") or (column.kind == "flag" and 0 <= late < LOOK)
        if self.form == "parquet":
            allowed = column.kind == "number"
        if allowed and self.chance(0.5):
            first = LOOK + 50 if column.kind == "flag" else late + 3  # one odd word, and flags are text
            for row in range(first, rows):
                if rng.random() < 0.02 and column.values[row] is not GAP:
                    column.values[row] = BAD

    def _name(self):
        """Names, some of them twice, odd or none at all; those of moments written as numbers say so."""
        names = ["a", "b", "size", "the name", "größe", "c9 x", "w%", 'say "x"', "x,y", "last"]
        self.choices.shuffle(names)
        twice = self.form == "delimited" and self.chance(0.3)
        for i, column in enumerate(self.columns):
            column.name = column.name or (f"x{i + 1}" if self.form == "libsvm" else names[i])
            if self.form == "arff":
                column.name = f"n{i}"
        if twice and len(self.columns) > 2:
            self.columns[1].name = self.columns[2].name
        self.target.name = "target" if self.form == "libsvm" else self.choices.choice(("y", "the price"))

    # ---- what is to be counted

    def asked(self):
        """How it is to be read, once columns have names."""
        options = {"missing": self.missing}
        if self.time is not None:
            options["time"] = self.names[id(self.time)]
        for column, back in self.lags:
            name = "target" if column is self.target else self.names[id(column)]
            options.setdefault("lag", {}).setdefault(name, []).append(back)
        return options

    def _without_gaps(self, look, count):
        """Rows that have all that is asked for; what the first rows leave empty is not."""
        needed = [column for column in self.columns if any(column is lagged for lagged, _ in self.lags) or (
            self._taken(column, look) and any(column.values[i] is not GAP for i in look))]  # fmt: skip
        return [i for i in count if all(column.values[i] not in (GAP, BAD) for column in needed)]

    @staticmethod
    def _wrong(column, use):
        return sum(column.values[i] is BAD for i in use)

    def counted(self, names, skipped_rows=(), at=None, *, target):
        """Counts of a reading in which columns have these names, but for rows that were skipped already."""
        self.names = dict(zip(map(id, self.columns), names, strict=True)) | {id(self.target): target}
        use = [i for i in range(self.rows) if i not in set(skipped_rows)]
        look, count = use[:LOOK], [i for i in use if self.target.values[i] is not GAP]
        skipped = {"bad row": len(skipped_rows), "missing target": len(use) - len(count)}
        longest = max((back for _, back in self.lags), default=0)
        whole = self._without_gaps(look, count)
        if len(whole) < longest + 5:
            self.missing = "fill"  # else nothing would be left
        if self.missing == "skip":
            skipped["missing"] = len(count) - len(whole)
            count = whole
        skipped["no past"] = min(longest, len(count))
        gaps, bad, numbers, used = {}, {}, {}, set()
        for column, back in self.lags:
            values = [column.values[i] for i in count]
            known = [float("nan") if v in (GAP, BAD) else float(v) for v in values[longest - back : -back]]
            numbers[f"{self.names[id(column)]} lag {back}"] = known
            gaps[f"{self.names[id(column)]} lag {back}"] = int(np.isnan(known).sum()) % max(len(known), 1)
        count = count[longest:]
        for column, name in zip(self.columns, names, strict=True):
            if not self._taken(column, look):
                if any(column is lagged for lagged, _ in self.lags) and (wrong := self._wrong(column, use)):
                    bad[name] = wrong
                continue
            missing = sum(column.values[i] in (GAP, BAD) for i in count)
            if any(column.values[i] is not GAP for i in use):
                used.add(name)
            if missing and any(column.values[i] not in (GAP, BAD) for i in count):
                gaps[name] = missing
            if wrong := self._wrong(column, use):
                bad[name] = wrong
            if column.kind == "number" and any(column.values[i] not in (GAP, BAD) for i in look):
                numbers[name] = [
                    float("nan") if column.values[i] in (GAP, BAD) else column.values[i] for i in count
                ]
        return {
            "every_line": list(at),
            "lines": [at[i] for i in count],
            "targets": [self.target.values[i] for i in count],
            "skipped": {reason: rows for reason, rows in skipped.items() if rows},
            "gaps": {name: rows for name, rows in gaps.items() if rows},
            "bad_cells": bad,
            "numbers": numbers,
            "used": used,
        }

    def _taken(self, column, look):
        """Whether it is no number of the row or of time, nor text that is different in each."""
        if column is self.time and column.kind == "number":
            return False
        seen = [column.values[i] for i in look if column.values[i] is not GAP]
        if column.kind == "text" and len(seen) > 1:
            return len(set(seen)) < len(seen)
        if column.kind == "number" and len(look) >= 10 and len(seen) == len(look):
            counts = all(value is not BAD and value == seen[0] + i for i, value in enumerate(seen))
            return not (counts and float(seen[0]).is_integer() and column.plain)
        return True

    def spelled_gap(self, column):
        """One of the spellings of a gap that such a column knows."""
        if self.na_values and self.rng.random() < 0.5:
            said = SAID if column.kind != "number" else (*SAID, "-999.0", "UNKNOWN")
            return str(self.rng.choice(said))
        label = column is self.target and column.kind != "number"  # a class may be called none
        spelled = TEXT_GAPS if column.kind == "text" or label else NUMBER_GAPS
        return str(self.rng.choice(spelled))

    def cell(self, column, row, gap=None):
        """As text."""
        value = column.values[row]
        if value is GAP:
            return self.spelled_gap(column) if gap is None else gap
        if value is BAD:
            if column.kind == "flag":
                return "maybe"
            return str(self.rng.choice(BAD_DATES if column.kind == "date" else BAD_NUMBERS))
        return column.write(value)


DATES = (
    "%Y-%m-%d", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S+01:00", "%Y/%m/%d %H:%M", "%d.%m.%Y", "%m/%d/%Y",
    "%m/%d/%Y %I:%M %p", "%d/%m/%y", "%d %b %Y", "%B %d, %Y", "%d-%b-%y", "%a, %d %b %Y %H:%M", "%Y-%m",
    "%Y%m%dT%H%M", "%I:%M %p",
    ("%Y%m%d", "sale date"),
    (lambda moment: str(int((moment - datetime.datetime(1970, 1, 1)).total_seconds())), "created_at"),
    (lambda moment: str(int((moment - datetime.datetime(1970, 1, 1)).total_seconds() * 1000)), "ts"),
)  # fmt: skip


# ---- files


def renamed(names):
    """a, a -> a, a.1; none of them has such a name already."""
    return [f"{name}.{names[:i].count(name)}" if name in names[:i] else name for i, name in enumerate(names)]


def options_of(table, more=None):
    options = {"target": table.target.name, "quiet": True} | (more or {})
    if table.na_values:
        options["na_values"] = list(SAID)
    return options


def delimited(table, folder):
    """CSV and its relatives: delimiter, quotes, header, ends of lines, encoding, lines that are too short."""
    choices = table.choices
    delimiter = choices.choice((",", ",", ";", "\t", "|", " "))
    quotes, end = choices.choice(("needed", "needed", "all")), choices.choice(("\n", "\n", "\r\n"))
    place = choices.randint(0, len(table.columns))
    order = [*table.columns[:place], table.target, *table.columns[place:]]
    encoding = choices.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"))
    options = {"encoding": encoding} if encoding == "cp1252" and table.chance(0.5) else {}  # else it is told

    def written(text):
        odd = any(sign in text for sign in (delimiter, '"', "\n", "\r")) or text != text.strip()
        odd = odd or (delimiter == " " and (not text or " " in text or "\t" in text))
        quoted = '"' + text.replace('"', '""') + '"'
        if delimiter == " " and '"' in text:
            return written(text.replace('"', ""))
        return quoted if odd or (quotes == "all" and text) else text

    header = choices.random() < 0.75
    names, lines, line = renamed([column.name for column in order]), [], 1
    if header:
        lines.append(delimiter.join(written(column.name) for column in order))
        if delimiter == " ":
            names = [name.replace('"', "") for name in names]
        line += 1
    else:
        options["header"] = False
        names = [f"c{i}" for i in range(1, len(order) + 1)]
    options["target"] = choices.choice((names[place], place + 1, place - len(order), str(place + 1)))
    broken = choices.choice((0.0, 0.0, 0.01))
    at, skipped = [], []
    for row in range(table.rows):
        cells = [written(table.cell(column, row)) for column in order]
        if row > 5 and table.rng.random() < broken:
            skipped.append(row)
            cells = cells[:-1] if len(cells) > 2 and table.rng.random() < 0.5 else [*cells, "7"]
        if row > 5 and table.rng.random() < 0.002:
            lines.append("")  # a line with nothing in it is no row
            line += 1
        lines.append(delimiter.join(cells))
        at.append(line)
        line += 1 + lines[-1].count("\n")
    text = end.join(lines) + (end if choices.random() < 0.8 else "")
    data, ending = packed(choices, text.encode(encoding))
    path = folder / f"{choices.choice(('t.csv', 't.txt', 'data'))}{ending}"
    path.write_bytes(data)
    own = [name for name, column in zip(names, order, strict=True) if column is not table.target]
    found = Untidy(path, options_of(table, options), **table.counted(own, skipped, at, target=names[place]))
    found.about |= {"delimiter": delimiter, "quotes": quotes, "encoding": encoding, "header": header}
    return found


def as_json(table, column, row):
    """A cell as JSON has it; None where the key is left out."""
    value = column.values[row]
    if value is GAP:
        spelled = table.spelled_gap(column) if table.rng.random() < 0.4 else None
        return float(spelled) if spelled in ("-999", "-999.0") and column.kind == "number" else spelled
    if value is BAD:
        return str(table.rng.choice(BAD_DATES if column.kind == "date" else BAD_NUMBERS[4:]))
    return column.write(value) if column.kind == "date" else value


def json_file(table, folder):
    """One object a line, or a list of them; a gap is null, absent, or said in words."""
    choices, columns = table.choices, [*table.columns, table.target]
    objects = []
    for row in range(table.rows):
        pairs = [(column.name, as_json(table, column, row)) for column in columns]
        keep = table.rng.random(len(pairs)) < 0.5 if row else [True] * len(pairs)
        objects.append({name: value for (name, value), stays in zip(pairs, keep, strict=True)
                        if value is not None or stays})  # fmt: skip
    names = [column.name for column in table.columns]
    if table.form == "json":
        text, at = json.dumps(objects, indent=choices.choice((None, 0, 2))), range(1, table.rows + 1)
    else:
        every = choices.choice((0, 0, 50))  # lines with nothing in them
        lines, at = [], []
        for row, each in enumerate(objects):
            lines += [""] if every and row % every == every - 1 else []
            lines.append(json.dumps(each, ensure_ascii=choices.random() < 0.5))
            at.append(len(lines))
        text = "\n".join(lines) + choices.choice(("", "\n"))
    data, ending = packed(choices, text.encode(choices.choice(("utf-8", "utf-8-sig"))))
    path = folder / f"{choices.choice((f't.{table.form}', 'data'))}{ending}"
    path.write_bytes(data)
    return Untidy(path, options_of(table), **table.counted(names, (), list(at), target=table.target.name))


def libsvm(table, folder):
    """Rows of what is not zero, with comments, and entries that are none; NaN is a gap."""
    rng, lines, skipped, at = table.rng, [], [], []
    for column in table.columns:
        column.values = [0.0 if rng.random() < 0.3 else value for value in column.values]
        column.values[2] = 1.5  # of the last one, too: the largest index is there
        for row in np.flatnonzero(rng.random(table.rows) < 0.01):
            if row > 3:
                column.values[row] = GAP if rng.random() < 0.5 else BAD
    for row in range(table.rows):
        if rng.random() < 0.01:
            lines.append("# nothing")
        entries = [
            f"{i}:{'nan' if value is GAP else 'inf' if value is BAD else value}"
            for i, value in enumerate((column.values[row] for column in table.columns), start=1)
            if value != 0.0
        ]
        if row > 5 and rng.random() < 0.01:
            skipped.append(row)
            entries.append("oops")
        comment = "  # as measured" if rng.random() < 0.1 else ""
        lines.append(" ".join([repr(table.target.values[row]), *entries]) + comment)
        at.append(len(lines))
    data, ending = packed(table.choices, "\n".join(lines).encode())
    path = folder / f"t.libsvm{ending}"
    path.write_bytes(data)
    names = [column.name for column in table.columns]
    return Untidy(path, {"quiet": True}, **table.counted(names, skipped, at, target="target"))


def arff(table, folder):
    """Declared attributes, "?" for a gap, comments among the rows."""
    rng, columns = table.rng, [*table.columns, table.target]
    kinds = {"number": "NUMERIC", "text": "string", "flag": "{yes,no}", "date": "date"}
    lines = ["% made up", "@RELATION 'a table'"]
    lines += [f"@attribute '{column.name}' {kinds[column.kind]}" for column in columns]
    lines += ["@data"]
    at = []

    def written(column, row):
        text = table.cell(column, row, "?")
        odd = column.values[row] is not GAP and any(sign in text for sign in " ,{}\"%'\t;#")
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'" if odd else text

    for row in range(table.rows):
        if rng.random() < 0.01:
            lines.append("% a remark")
        lines.append(",".join(written(column, row) for column in columns))
        at.append(len(lines))
    data, ending = packed(table.choices, "\n".join(lines).encode())
    path = folder / f"t.arff{ending}"
    path.write_bytes(data)
    names = [column.name for column in table.columns]
    return Untidy(path, options_of(table), **table.counted(names, (), at, target=table.target.name))


def parquet(table, folder):
    """Typed columns with nulls; a bad cell is an infinite number."""
    own = {}
    for column in (*table.columns, table.target):
        values = [None if v is GAP else float("inf") if v is BAD else v for v in column.values]
        said = column.kind == "text" and table.chance(0.5)
        own[column.name] = [table.spelled_gap(column) if v is None else v for v in values] if said else values
    path = folder / "t.parquet"
    pa.parquet.write_table(pa.table(own), path, row_group_size=table.choices.choice((100, 1000, 10_000)))
    names = [column.name for column in table.columns]
    return Untidy(
        path,
        options_of(table),
        **table.counted(names, (), list(range(1, table.rows + 1)), target=table.target.name),
    )


WRITERS = {
    "delimited": delimited,
    "jsonl": json_file,
    "json": json_file,
    "libsvm": libsvm,
    "arff": arff,
    "parquet": parquet,
}


def packed(choices, data):
    """The bytes, perhaps compressed, and what the name then ends in."""
    how = choices.choice(("", "", "", "gz", "bz2", "xz", "zst", "lz4", "zip"))
    if how == "zip":
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inside.csv", data)
        return out.getvalue(), ".zip"
    if how in ("zst", "lz4"):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, {"zst": "zstd"}.get(how, how)) as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes(), f".{how}"
    pack = {"": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[how]
    return pack(data), f".{how}" if how else ""
