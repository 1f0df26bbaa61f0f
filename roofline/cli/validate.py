"""``roofline validate``."""


def validate() -> None:
    """x"""
