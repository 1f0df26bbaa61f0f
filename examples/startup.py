"""How long the commands take to start, as multiples of an empty Python process on the same machine.

    python examples/startup.py

The budget: `roofline --help` under 10 times `python -c pass`, `roofline analyze decode` under 25 times.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "roofline --help": ["-m", "roofline", "--help"],
    "roofline analyze decode": ["-m", "roofline", "analyze", "decode"],
    "roofline hardware list": ["-m", "roofline", "hardware", "list"],
}
ROUNDS = 15


def once(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    # interleaved, so that a change of the machine's speed meets all of them alike
    rounds = [{name: once(arguments) for name, arguments in COMMANDS.items()} for _ in range(ROUNDS)]
    for name in COMMANDS:
        ratio = statistics.median(times[name] / times["python -c pass"] for times in rounds)
        middle = statistics.median(times[name] for times in rounds)
        print(f"{ratio:6.1f} x  {middle * 1e3:7.1f} ms  {name}")


if __name__ == "__main__":
    main()
