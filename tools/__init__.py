"""What developers run besides the tests and the benchmarks."""
