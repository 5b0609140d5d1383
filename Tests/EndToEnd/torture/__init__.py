"""Random histories on real mounts against simulated services, and what must be true of them."""
