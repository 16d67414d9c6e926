"""Parts of the benchmark of Kymas: its modules, its clusters' workloads, and arithmetic."""
