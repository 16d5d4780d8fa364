"""Benchmarks, as ratios within one run: `make bench`, or `python -m tests.benchmarks --help`."""
