"""roofline: what bounds an inference workload, how close it runs to the limit, and what would change it."""

__version__ = "0.1.0"
