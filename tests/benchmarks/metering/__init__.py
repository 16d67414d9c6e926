"""Figures of a whole `hortus up`, for all benchmarks that start one."""
