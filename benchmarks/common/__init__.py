"""What benchmarks share."""
