"""The extras beside the frameworks on the same clients, in one environment each, as a resolver answers.

A pin of ours that is too narrow does not fail: the resolver silently takes an older framework, or another major release
of the client. So each framework is asked for by the release that it must not fall below, without any override.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
CLIENTS = {"kafka-python": "kafka-python", "aiokafka": "aiokafka", "confluent": "confluent-kafka"}
FRAMEWORKS = {
    "FastStream 0.5": "faststream[kafka,confluent]>=0.5.48,<0.6",
    "FastStream 0.6": "faststream[kafka,confluent]>=0.6.7,<0.7",
    "FastStream 0.7": "faststream[kafka,confluent]>=0.7.8",
    "Quix Streams": "quixstreams>=3.28.1",
    "Faust": "faust-streaming>=0.15.3",
    "Airflow's provider": "apache-airflow-providers-apache-kafka>=2.1",
    "kombu": "kombu[confluentkafka]>=5.7",
}
# The oldest release of each client that the support table promises, and others that a user may have pinned.
PINS = {
    "kafka-python": ("2.0.2", "2.0.6", "2.1.6", "2.2.21", "2.3.2", "3.0.12"),
    "aiokafka": ("0.10.0", "0.11.0", "0.12.0", "0.13.0", "0.14.0"),
    "confluent": ("2.3.0", "2.8.2", "2.12.2", "2.13.2", "2.15.1", "2.16.1"),
}


def ours(*extras: str) -> list[str]:
    """The requirements of these extras."""
    return [requirement for extra in extras for requirement in EXTRAS[extra]]


def resolved(tmp_path: Path, *requirements: str) -> dict[str, Version]:
    """The release of each package that the resolver chooses. Settings of the project and of the user are ignored."""
    asked = tmp_path / "requirements.in"
    asked.write_text("\n".join(requirements))
    command = ["pip", "compile", "--no-config", "--no-header", "--no-annotate", "--quiet", "--python-version", "3.11"]
    done = subprocess.run(
        [Path(sys.executable).with_name("uv"), *command, asked],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pins = [Requirement(line) for line in done.stdout.splitlines() if line and not line.startswith("#")]
    return {pin.name: Version(next(iter(pin.specifier)).version) for pin in pins}


@pytest.mark.needs("index")
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_ours_and_a_framework_resolve_in_one_environment(framework: str, tmp_path: Path) -> None:
    requirement = Requirement(FRAMEWORKS[framework])
    found = resolved(tmp_path, str(requirement), *ours(*CLIENTS))
    assert requirement.specifier.contains(found[requirement.name])
    assert found.keys() >= set(CLIENTS.values())


@pytest.mark.parametrize(
    ("extra", "release"), [(extra, release) for extra, releases in PINS.items() for release in releases]
)
def test_an_extra_lets_a_client_stay_where_it_is(extra: str, release: str) -> None:
    (requirement,) = map(Requirement, EXTRAS[extra])
    assert requirement.name == CLIENTS[extra]
    assert requirement.specifier.contains(release)
    major, minor, _ = Version(release).release
    # The next release of any client is not shut out: a cap at the next minor makes a package uninstallable soon.
    assert requirement.specifier.contains(f"{major}.{minor + 1}.0")
