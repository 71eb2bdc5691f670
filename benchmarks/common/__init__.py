"""Common parts of benchmarks."""
