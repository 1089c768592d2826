"""Tools for developers, besides the tests and the benchmarks; nothing here is installed."""
