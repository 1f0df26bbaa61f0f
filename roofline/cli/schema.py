"""``roofline schema``: the JSON schemas of the YAML files."""

from __future__ import annotations

from typing import Annotated

import typer

from roofline.errors import RooflineError, nearest

ROOMS = ("workload", "hardware")


def schema(
    room: Annotated[str, typer.Argument(metavar="workload|hardware", help="Which kind of YAML file.")],
) -> None:
    """Print the JSON schema of workload descriptors or of hardware files, for editors and checks."""
    from roofline.results.files import dumps

    if room not in ROOMS:
        raise RooflineError(
            f"no schema {room!r}: one of {', '.join(ROOMS)}", code="unknown-schema", suggestions=nearest(room, ROOMS)
        )
    if room == "workload":
        from roofline.workload import json_schema
    else:
        from roofline.hardware import json_schema
    typer.echo(dumps(json_schema()), nl=False)
