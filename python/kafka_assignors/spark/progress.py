"""A bar that follows Spark's tasks while something runs."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from rich.console import Console

__all__ = ["Steps", "on_stderr"]

_EVERY = 0.2


def on_stderr() -> Console:
    """A console for progress, on standard error, since other programs read standard output."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


class Steps:
    """A progress bar over steps with weights: the durations relative to each other.

    Args:
        console: the console of the bar; unless it is a terminal, each finished step prints a line.
        total: the sum of all weights.
    """

    def __init__(self, console: Console, total: float) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._total = total
        self._task = self._progress.add_task("", total=total)
        self._done = 0.0

    def __enter__(self) -> Steps:
        self._progress.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._progress.stop()

    @contextmanager
    def step(
        self, what: str, weight: float, spark: SparkSession | None = None, *, printed: bool = True
    ) -> Iterator[None]:
        """One step; with a session, the bar follows the tasks of the Spark jobs that this thread starts.

        Args:
            what: the step's name.
            weight: its duration, relative to the other steps.
            spark: the session.
            printed: whether a finished step prints a line with its name and its seconds.
        """
        import time

        self._progress.update(self._task, description=f"{what:<44}")
        started = time.monotonic()
        over = threading.Event()
        follower = None
        if spark is not None and not self._progress.disable:
            follower = threading.Thread(target=self._follow, args=(spark, weight, over), daemon=True)
            follower.start()
        try:
            yield
        finally:
            over.set()
            if follower is not None:
                follower.join()
        self._done += weight
        self._progress.update(self._task, completed=self._done)
        if printed:
            self._console.print(f"{what:<44} {time.monotonic() - started:6.1f} s", highlight=False)

    def _follow(self, spark: SparkSession, weight: float, over: threading.Event) -> None:
        """Moves the bar with the finished tasks. Tasks are added meanwhile: it stays below 90 % and never goes back."""
        from py4j.protocol import Py4JError

        tracker = spark.sparkContext.statusTracker()
        at = 0.0
        while not over.wait(_EVERY):
            try:
                stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            except Py4JError:  # the session is being stopped
                return
            tasks = sum(stage.numTasks for stage in stages if stage is not None)
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            if tasks:
                at = max(at, 0.9 * done / tasks)
                self._progress.update(self._task, completed=self._done + weight * at)
