"""The wheel as a whole: what it says of itself."""

import importlib.metadata

import kafka_assignors
from kafka_assignors import _core


def test_version_is_the_wheels_version() -> None:
    assert kafka_assignors.__version__ == _core.__version__ == importlib.metadata.version("kafka-assignors")


def test_the_extension_is_a_release_build() -> None:
    assert _core.build_profile == "release"


def test_types_ship_with_the_wheel() -> None:
    files = {str(file) for file in importlib.metadata.files("kafka-assignors") or ()}
    assert {"kafka_assignors/py.typed", "kafka_assignors/_core.pyi"} <= files
