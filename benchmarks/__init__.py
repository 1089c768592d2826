"""Time, memory and accuracy of kons beside others, in one run: ``python -m benchmarks --help``.

One file per question; ``measuring`` holds the clocks, ``streams`` the data, ``subjects`` the learners
of kons, ``contenders`` and ``tree_rivals`` those of others, ``cache`` what these reached, ``reporting`` the
tables.
"""
