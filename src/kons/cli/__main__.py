"""``python -m kons.cli``, where the ``kons`` command is not on the path."""

import sys

from kons.cli import main

if __name__ == "__main__":
    sys.exit(main())
