"""Benchmarks: figures as ratios within one run, printed beside what they are compared with. Run by `make bench`."""
