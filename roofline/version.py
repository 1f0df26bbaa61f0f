"""The version, on the lowest floor so that records can name it."""

__version__ = "0.1.0"
