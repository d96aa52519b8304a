"""One sentence that names the setting to change when Spark has too little memory, instead of Java's stack traces."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["too_small"]

# Spark's heap without a setting.
_DEFAULT = "1g"
_OUT_OF_MEMORY = (
    "java.lang.OutOfMemoryError",
    "SparkOutOfMemoryError",
    "UNABLE_TO_ACQUIRE_MEMORY",
    "OutOfMemoryException",
    "INVALID_DRIVER_MEMORY",
    "INVALID_EXECUTOR_MEMORY",
    "System memory ",
    "Not enough memory to build and broadcast",
)
_OF_EXECUTORS = ("ExecutorLostFailure", "INVALID_EXECUTOR_MEMORY")
# Exit statuses of a JVM without memory: Spark's own (`SparkExitCode.OOM`), and those of a kill by the system.
_OOM, _KILLED = 52, (-9, 137)


def too_small(error: BaseException) -> str | None:
    """The sentence for an error of memory; None for another error. If the JVM is gone, its exit status decides."""
    texts = [_text(each) for each in _chain(error)]
    if any(name in text for text in texts for name in _OUT_OF_MEMORY):
        on_executors = not _master().startswith("local") and any(
            name in text for text in texts for name in _OF_EXECUTORS
        )
        return _sentence("executor" if on_executors else "driver")
    ended = _ended() if any(_lost(each) for each in _chain(error)) else None
    if ended == _OOM:
        return _sentence("driver")
    if ended in _KILLED:
        return (
            "Spark's JVM was killed, as a system does that has no memory left: give it a smaller heap with --conf "
            "spark.driver.memory, or fewer tasks at once with --master 'local[1]'"
        )
    return None


def _sentence(what: str) -> str:
    name = f"spark.{what}.memory"
    here = "" if what == "executor" or not _master().startswith("local") else ", whose heap does all of the work here"
    return (
        f"Spark has too little memory: {name}, that of the {what}{here}, is {_setting(name)}; give more, such as "
        f"--conf {name}=4g"
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    found: BaseException | None = error
    for _ in range(20):
        if found is None:
            return
        yield found
        found = found.__cause__ or found.__context__


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # the text of a Java exception comes from the JVM, which may be gone
        return ""


def _lost(error: BaseException) -> bool:
    """Whether the connection to the JVM is gone."""
    # Compared by name, since py4j is installed only with Spark.
    return isinstance(error, ConnectionError | EOFError) or type(error).__name__ in ("Py4JNetworkError", "Py4JError")


def _ended() -> int | None:
    """The exit status of the JVM that this process has started; None if it still runs, or there is none."""
    try:
        from pyspark import SparkContext

        process = getattr(SparkContext._gateway, "proc", None)
        return None if process is None else int(process.wait(10))
    except Exception:  # the JVM still runs, or there was none
        return None


def _master() -> str:
    return _conf("spark.master") or "local"


def _setting(name: str) -> str:
    return _conf(name) or _DEFAULT


def _conf(name: str) -> str | None:
    """A setting of the session, from its copy in Python; if that lacks the setting, from the JVM's command line."""
    try:
        from pyspark import SparkContext
    except ImportError:
        return None
    context = SparkContext._active_spark_context
    remembered = getattr(context, "_conf", None) if context is not None else None
    known = getattr(remembered, "_conf", None) or {}
    if name in known:
        return str(known[name])
    started = getattr(getattr(SparkContext._gateway, "proc", None), "args", None) or ()
    given = [*map(str, started), *os.environ.get("PYSPARK_SUBMIT_ARGS", "").split()]
    return next((part.split("=", 1)[1].strip('"') for part in given if part.startswith(f"{name}=")), None)
