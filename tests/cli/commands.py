"""What every command that fails has to do."""

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
