"""Measuring: devices under one clock, ceilings, and the bound of an op as its times show it."""
