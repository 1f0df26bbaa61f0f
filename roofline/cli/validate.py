"""``roofline validate``: predict for this machine, time the kernels, and judge the prediction by the times."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from roofline.cli.common import Force, Format, OpGlob, Output, Set, emit, ready
from roofline.errors import RooflineError

if TYPE_CHECKING:
    from roofline.results.run import RunRecord

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


def validate(
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="A descriptor: a path or a name.")],
    device: Annotated[str, typer.Option("--device", help="What runs it: auto, cpu, cuda or cuda:N.")] = "auto",
    budget: Annotated[str, typer.Option("--budget", help="Time for the ops, after the ceilings: 60s, 5min.")] = "60s",
    max_memory: Annotated[
        str | None, typer.Option("--max-memory", help="Most memory to use: 8GiB. Ops that need more are skipped.")
    ] = None,
    min_fraction: Annotated[
        float | None, typer.Option("--min-fraction", help="Fail where an op reaches less of its roof: 0.6.")
    ] = None,
    recalibrate: Annotated[
        bool, typer.Option("--recalibrate", help="Measure the ceilings afresh, whatever is cached.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random inputs.")] = 0,
    changes: Set = None,
    op: OpGlob = None,
    fmt: Format = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Check a prediction by timing: measure this machine's ceilings, time each distinct op, judge each by its times.

    Of a large model one layer's worth is timed, and what did not fit the memory or the budget is listed as skipped.
    Exit codes: 0 fine, 1 a row contradicted, above its roof or errored (or under --min-fraction), 2 bad input,
    3 nothing was judged, 130 interrupted (what was measured is kept).
    """
    from roofline import workload as descriptors
    from roofline.quantities import parse
    from roofline.results.run import SCHEMA

    ready(SCHEMA, fmt, output, force)  # what cannot be written is said before any work
    if min_fraction is not None and not 0 <= min_fraction <= 1:
        raise RooflineError(f"--min-fraction is between 0 and 1, not {min_fraction:g}", code="out-of-range")
    work = descriptors.load(workload, tuple(changes or ()), ops=op)
    seconds = parse(budget, "seconds")
    memory = None if max_memory is None else parse(max_memory, "bytes")
    tree = work.tree  # a pattern that matches no op is said before torch loads

    from roofline import session

    with _progress() as progress:
        record = session.validate(
            tree,
            device,
            budget_s=seconds,
            max_memory=memory,
            seed=seed,
            recalibrate=recalibrate,
            progress=progress,
        )
    emit(record.to_json(), fmt=fmt, output=output, force=force)
    for path, fraction in _below(record, min_fraction):
        print(
            f"{path} reaches {fraction:.1%} of its roof, less than --min-fraction {min_fraction:.1%}", file=sys.stderr
        )
    if output is None and fmt != "json":
        print("nothing was kept: -o run.json keeps the record of a run", file=sys.stderr)
    raise typer.Exit(_exit_code(record, min_fraction))


def _exit_code(record: RunRecord, min_fraction: float | None) -> int:
    if not record.complete:
        return EXIT_INTERRUPTED
    return EXIT_FAILED if _below(record, min_fraction) else record.exit_code


def _below(record: RunRecord, min_fraction: float | None) -> list[tuple[str, float]]:
    """The ops that reach less of their roof than is asked for."""
    if min_fraction is None:
        return []
    reached = [(op.path, op.roof_fraction) for op in record.ops if op.roof_fraction is not None]
    return [(path, fraction) for path, fraction in reached if fraction < min_fraction]


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr that says what is being timed; plain lines where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: print(f"[{done}/{total}] {what}", file=sys.stderr)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    # no thread of its own: it would run beside what is being timed
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total, refresh=True)
