"""Every number that a measurement's stop or a verdict depends on. Nothing here is tuned to one machine."""

from __future__ import annotations

from typing import Final

# Sampling ------------------------------------------------------------------------------------------------------------

CONFIDENCE: Final = 0.95
"""Level of every interval."""

MIN_SAMPLES: Final = 7
"""Fewest samples from which a median has an order-statistic interval at that level with one to spare."""

MAX_SAMPLES: Final = 2_000

GRACE: Final = 1.5
"""Overdraft of its budget that is left to an op which has fewer than the fewest samples."""

TIGHT: Final = {"cpu": 0.02, "cuda": 0.005}
"""Half-width of the interval of the median, relative, at which sampling stops."""

PLATEAU_SAMPLES: Final = 48
PLATEAU_GAIN: Final = 0.9
"""Sampling has levelled off when doubling the samples left more than this part of the half-width (0.71 is expected)."""

OVERHEAD: Final = 0.01
"""Most of a sample that reading the clock may take."""

WAITED: Final = 0.01
"""A sample is disturbed when its threads waited for a core for more than this part of it."""

QUIET_SAMPLES: Final = 3
"""Fewest undisturbed samples whose median stands for the op; with fewer the fastest sample does."""

COLD_COPIES: Final = 5.0
"""Rotating operands must span this many last-level caches for a run to be called cold."""

DOUBTFUL_SPAN: Final = 256 << 20
"""Most that is spanned on account of a cache that is reported but does not behave like one."""

MAX_COPIES: Final = 256
"""Copies of small operands are not multiplied beyond this: such an op is called hot instead."""

# Ceilings ------------------------------------------------------------------------------------------------------------

CEILING_SPAN: Final = 4.0
"""Working set of a memory ceiling, in last-level caches."""

CACHE_GAIN: Final = 2.0
"""A cache level is believed when reads from it are at least this much faster than from memory."""

CEILING_MEMORY: Final = 0.25
"""Most of a run's memory that the buffers of the memory ceilings take."""

CALIBRATION_ROUNDS: Final = 3
CALIBRATION_S: Final = 8.0
"""Rounds of a calibration, and the seconds after which no further one begins."""

READING_SAMPLES: Final = 3
READING_S: Final = 0.015
MAX_READING_SAMPLES: Final = 15
"""A reading takes each kernel at least so often, then for so long (ten times while disturbed), at most so often."""

TOUCHED_KERNELS: Final = 3
"""Kernels of a ceiling that are touched again, the fastest of its calibration."""

MATTERS: Final = 0.25
"""A resource is touched again beside an op when its time is at least this part of the op's floor."""

# Elasticities --------------------------------------------------------------------------------------------------------

MIN_POINTS: Final = 4
MIN_SPAN: Final = 2.0
"""Fewest points of a fit, and how far FLOPs and bytes must each spread over them."""

MAX_CORRELATION: Final = 0.9
"""FLOPs and bytes that move together more than this cannot be told apart."""

MAX_RESIDUAL: Final = 0.2
"""Largest residual (natural log of time) that a fit may leave at any point; one point beyond it may be left out."""

MAX_SPREAD: Final = 0.25
"""Largest half-width of the interval of an elasticity on which a verdict may rest."""

STEP_SLACK: Final = 0.3
"""One kernel's time never grows by more than its work by so much a doubling: beyond that another one took over."""

FALL_SLACK: Final = 0.5
"""Nor does it fall by more than so much a doubling. A milder fall is a GEMV that gives way to a better GEMM: what it
says of the op, that more FLOPs cost no time, is true of the op too."""

DOMINANT: Final = 0.7
NEGLIGIBLE: Final = 0.3
"""An elasticity of at least the first, and the other of at most the second, decide a bound; both below: overhead."""

PROPORTIONAL: Final = (0.85, 1.15)
"""Slope of time over size that counts as proportional."""

# Verdicts ------------------------------------------------------------------------------------------------------------

ON_ROOF: Final = {"cpu": 0.5, "cuda": 0.6}
"""Fraction of a ceiling from which an op sits on it."""

OFF_ROOF: Final = 0.5
"""Fraction of the other ceiling below which an op does not sit on that one too."""

LAUNCHES_TO_SEPARATE: Final = 5.0
"""Elasticities are read only from times above this many launch floors."""

LAUNCH_BOUND: Final = 3.0
"""Below this many launch floors an op is bound by its launch."""

# Session -------------------------------------------------------------------------------------------------------------

MEMORY_SHARE: Final = 0.5
"""Part of the available memory that a run takes unless told otherwise."""

TOUCH_EVERY_S: Final = 1.0
"""Ceilings are touched again after so much timing of an op."""

ENOUGH_ROUNDS: Final = 8
FEWEST_ROUNDS: Final = 3
"""Rounds over an op and its neighbours: what is aimed for, and what a long op makes do with."""

HEAD_START: Final = 0.3
"""Most of its share of the budget that an op's own first samples take."""

EFFICIENCY: Final = 0.4
"""Part of its floor's speed that an op is expected to reach before it was timed, for sharing out the budget."""

MAKING_BYTES_PER_S: Final = 5e9
"""Operands made in a second, roughly, for sharing out the budget."""

MIN_SHARE: Final = 0.3
"""Seconds below which no op's share of the budget falls."""

AGAIN: Final = 1
"""Times that an op which failed (above roof, contradicted) is timed again before that is its verdict."""
