"""The whole wheel: its version, its types, and the names that its root exports."""

import importlib
import importlib.metadata
import pkgutil
from collections.abc import Iterator

import kafka_assignors
from kafka_assignors import _core, errors


def test_version_is_the_wheels_version() -> None:
    assert kafka_assignors.__version__ == _core.__version__ == importlib.metadata.version("kafka-assignors")


def test_types_ship_with_the_wheel() -> None:
    files = {str(file) for file in importlib.metadata.files("kafka-assignors") or ()}
    assert {"kafka_assignors/py.typed", "kafka_assignors/_core.pyi"} <= files


def classes() -> Iterator[type]:
    """Every class that a module of the package defines."""
    for module in pkgutil.walk_packages(kafka_assignors.__path__, "kafka_assignors."):
        found = importlib.import_module(module.name)
        yield from (each for each in vars(found).values() if isinstance(each, type))


def test_every_error_is_importable_from_the_root() -> None:
    """An error that also is a client's exception is a subclass of the root's error with the same name."""
    raised = {
        each
        for each in classes()
        if issubclass(each, errors.KafkaAssignorsError | errors.RecordSizeWarning | errors.ClientReleaseWarning)
        and each.__module__.startswith("kafka_assignors")
    }
    assert {each.__name__ for each in raised} == set(errors.__all__)
    for each in raised:
        assert issubclass(each, getattr(kafka_assignors, each.__name__)), each
    assert all(getattr(kafka_assignors, name) is getattr(errors, name) for name in errors.__all__)


def test_the_root_has_the_vocabulary() -> None:
    assert {"Assignor", "LagSource", "by_name", *errors.__all__} <= set(kafka_assignors.__all__)
    assert [name for name in kafka_assignors.__all__ if not hasattr(kafka_assignors, name)] == []
