"""Parts of the benchmark of cluster stacks: releases and their host, the fleet, what is seen of it, arithmetic."""
