"""Time and memory of kons as ratios measured in one run: ``python -m benchmarks --help``.

One file per question; ``measuring`` holds the clocks, ``streams`` the data, ``reporting`` the tables.
"""
