"""What every command that fails has to do, and how those that work lay out what they print."""

import os

from kons.cli import main


def told_in_one_line(capsys, arguments, code):
    """What a command that fails with this code says."""
    before = sorted(os.listdir())
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("kons: ")
    assert err.count("\n") == 1
    assert "bug" not in err
    assert sorted(os.listdir()) == before
    return err


def blocks_of(out):
    """The blocks that are printed, their lines without padding; each has an empty line around it."""
    lines = [line.strip() for line in out.split("\n")]
    text = "\n".join(lines)
    assert text.startswith("\n")
    assert text.endswith("\n\n")
    assert "\n\n\n" not in text
    return [block.split("\n") for block in text[1:-2].split("\n\n")]
