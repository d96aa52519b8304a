"""The platforms that a release has wheels for, and what each wheel promises.

One table for the build, the checks and the list of files: a platform that is added here is built and checked, and
`check_files.py --release` asks for its wheels.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Format = Literal["elf", "mach-o", "pe"]


@dataclass(frozen=True, slots=True)
class Platform:
    """Where a wheel runs.

    Attributes:
        name: What `make wheels PLATFORMS=…` calls it.
        target: The target of the Rust compiler.
        tag: The platform in the name of the wheel (PEP 425, 600, 656), which is a promise: the oldest C library, or the
            oldest macOS, that the wheel runs on.
        format: The format of the extension module.
        machine: The processor, as the header of that format has it.
    """

    name: str
    target: str
    tag: str
    format: Format
    machine: int

    @property
    def compatibility(self) -> str | None:
        """The policy that maturin links for; macOS and Windows have none."""
        found = re.fullmatch(r"((many|musl)linux_\d+_\d+)_\w+", self.tag)
        return found[1] if found else None

    @property
    def oldest(self) -> tuple[int, int] | None:
        """The oldest C library or macOS of the tag; None on Windows, whose tag names none."""
        found = re.match(r"(?:manylinux|musllinux|macosx)_(\d+)_(\d+)_", self.tag)
        return (int(found[1]), int(found[2])) if found else None


# The numbers of the machines: e_machine of ELF, cputype of Mach-O, Machine of COFF.
PLATFORMS = (
    Platform("manylinux-x86_64", "x86_64-unknown-linux-gnu", "manylinux_2_17_x86_64", "elf", 62),
    Platform("manylinux-aarch64", "aarch64-unknown-linux-gnu", "manylinux_2_17_aarch64", "elf", 183),
    Platform("musllinux-x86_64", "x86_64-unknown-linux-musl", "musllinux_1_2_x86_64", "elf", 62),
    Platform("musllinux-aarch64", "aarch64-unknown-linux-musl", "musllinux_1_2_aarch64", "elf", 183),
    Platform("macos-arm64", "aarch64-apple-darwin", "macosx_11_0_arm64", "mach-o", 0x0100000C),
    Platform("macos-x86_64", "x86_64-apple-darwin", "macosx_11_0_x86_64", "mach-o", 0x01000007),
    Platform("windows-x86_64", "x86_64-pc-windows-gnullvm", "win_amd64", "pe", 0x8664),
    Platform("windows-arm64", "aarch64-pc-windows-gnullvm", "win_arm64", "pe", 0xAA64),
)


@dataclass(frozen=True, slots=True)
class Abi:
    """Which Pythons a wheel is for.

    Attributes:
        name: Its part of the wheel's name: Python and ABI tag.
        interpreter: The Python that maturin builds for.
        arguments: Further arguments of maturin.
    """

    name: str
    interpreter: str
    arguments: tuple[str, ...] = ()

    @property
    def stable(self) -> bool:
        """One wheel for this Python and every newer one."""
        return self.name.endswith("-abi3")


# Free-threaded Python has no stable ABI before 3.15, so each has a wheel of its own.
ABIS = (
    Abi("cp311-abi3", "python3.11"),
    Abi("cp314-cp314t", "python3.14t", ("--no-default-features",)),
)


def chosen(names: list[str]) -> list[Platform]:
    """The platforms of these names, all of them for no name.

    Raises:
        ValueError: a name that no platform has.
    """
    known = {platform.name: platform for platform in PLATFORMS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"no platform is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [known[name] for name in names] if names else list(PLATFORMS)


def of_wheel(filename: str) -> tuple[Platform, Abi]:
    """The platform and the ABI in the name of a wheel.

    Raises:
        ValueError: a wheel that no release has.
    """
    for platform in PLATFORMS:
        for abi in ABIS:
            # A wheel may carry several tags of one platform, as manylinux_2_17 and its older name.
            if re.fullmatch(rf"kafka_assignors-[^-]+-{abi.name}-(\w+\.)*{platform.tag}(\.\w+)*\.whl", filename):
                return platform, abi
    raise ValueError(f"{filename}: no release has such a wheel")


def expected() -> list[str]:
    """The names of a release's files: * is the version, and the older name that a tag may have."""
    names = [f"kafka_assignors-*-{abi.name}-*{platform.tag}.whl" for abi in ABIS for platform in PLATFORMS]
    return ["kafka_assignors-*.tar.gz", *names]
