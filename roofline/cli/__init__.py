"""The commands: each module parses, calls and renders; none does arithmetic."""
