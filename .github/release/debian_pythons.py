"""Pythons out of Debian's packages, unpacked into folders: nothing is installed, and no program runs as root for it.

    python .github/release/debian_pythons.py target/pythons 3.13 3.14-arm64

A folder has the packages of one Debian release with all that they depend on, the C library too, and a program
`usr/bin/python` that starts Python with that library: by its own loader, or by qemu for another processor. The
packages come from the mirror that this machine's apt is set up for, and apt checks their signatures.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# The release of Debian that has each Python.
SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
# The loader that starts a program of a folder with the folder's libraries. For arm64 qemu starts the program.
LOADERS = {"amd64": "lib64/ld-linux-x86-64.so.2", "musl": "lib/ld-musl-x86_64.so.1"}
LIBRARIES = {"amd64": ("usr/lib/x86_64-linux-gnu", "usr/lib"), "musl": ("usr/lib/x86_64-linux-musl",)}


@dataclass(frozen=True, slots=True)
class Repository:
    """A release of Debian for one processor, as apt sees it with lists of its own.

    Attributes:
        folder: Where the lists and the downloaded packages are.
        suite: The release.
        architecture: Debian's name of the processor.
        sources: Whether it is the repository of sources.
    """

    folder: Path
    suite: str
    architecture: str
    sources: bool = False

    def apt(self, *arguments: str, cwd: Path | None = None) -> None:
        """Run apt-get on this repository.

        Raises:
            CalledProcessError: apt has said why.
        """
        options = {
            "APT::Architecture": self.architecture,
            "APT::Architectures": self.architecture,
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            "Acquire::Languages": "none",
            "Dir::Cache": f"{self.folder}/cache",
            "Dir::Etc::sourcelist": f"{self.folder}/sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": f"{self.folder}/lists",
            # An empty list of installed packages, so that apt downloads everything that a package depends on.
            "Dir::State::status": f"{self.folder}/status",
        }
        set_up = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        subprocess.run(["apt-get", "-qq", *set_up, *arguments], cwd=cwd, check=True, stdout=subprocess.DEVNULL)

    def update(self) -> None:
        """Download the lists of the repository."""
        for name in ("lists/partial", "cache/archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        kind = "deb-src" if self.sources else "deb"
        (self.folder / "sources.list").write_text(f"{kind} [signed-by={KEYRING}] {mirror()} {self.suite} main\n")
        self.apt("update")

    def source(self, package: str) -> Path:
        """The archive of a package's sources as its authors published it, which apt downloads.

        Raises:
            ValueError: the package has no such archive.
        """
        self.update()
        archives = self.folder / package
        archives.mkdir(exist_ok=True)
        self.apt("source", "--download-only", "--tar-only", package, cwd=archives)
        found = sorted(archives.glob("*.orig.tar.*[!c]"))
        if len(found) != 1:
            raise ValueError(
                f"the sources of {package} are in {[path.name for path in found]}: one archive was expected"
            )
        return found[0]

    def unpack(self, root: Path, *packages: str, alone: bool = False) -> None:
        """Unpack packages into a folder, with all that they depend on or alone."""
        self.update()
        if alone:
            archives = self.folder / "alone"
            archives.mkdir(exist_ok=True)
            self.apt("download", *packages, cwd=archives)
        else:
            archives = self.folder / "cache" / "archives"
            self.apt("install", "--yes", "--download-only", *packages)
        root.mkdir(parents=True)
        # Where /lib and the like are links into /usr, the packages expect that the links are there.
        for name in ("bin", "lib", "lib64", "sbin"):
            (root / "usr" / name).mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(Path("usr") / name)
        for package in sorted(archives.glob("*.deb")):
            # tar keeps the links; dpkg-deb --extract would replace them by folders.
            content = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE)
            unpacking = ["tar", "--extract", "--keep-directory-symlink", "--no-same-owner", "--directory", str(root)]
            subprocess.run(unpacking, stdin=content.stdout, check=True)
            if content.wait() != 0:
                raise subprocess.CalledProcessError(content.returncode, content.args)


def mirror() -> str:
    """The mirror of Debian that this machine's apt is set up for.

    Raises:
        SystemExit: apt is set up for no Debian.
    """
    files = [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]
    texts = [path.read_text() for path in files if path.suffix in (".list", ".sources") and path.is_file()]
    for text in texts:
        found = re.search(r"^URIs: *(\S+/debian)/?\s*$|^deb (?:\[[^\]]*\] )?(\S+/debian)/? ", text, re.MULTILINE)
        if found:
            return found[1] or found[2]
    sys.exit("this machine's apt knows no mirror of Debian, from which the Pythons for other machines come.")


def qemu(folder: Path) -> Path:
    """The program that runs arm64's programs on this processor: linked statically, so that it runs anywhere."""
    root = folder / "qemu"
    if not root.exists():
        Repository(folder / "apt-qemu", "trixie", "amd64").unpack(root, "qemu-user", alone=True)
    return root / "usr" / "bin" / "qemu-aarch64"


def python(folder: Path, version: str, architecture: str = "amd64") -> Path:
    """The program of a Python, unpacked if it is not there yet.

    Args:
        folder: Where the Pythons are.
        version: Such as 3.13.
        architecture: Debian's name of the processor, amd64 or arm64.
    """
    folder = folder.resolve()
    root = folder / f"{version}-{architecture}"
    program = root / "usr" / "bin" / "python"
    if program.exists():
        return program
    shutil.rmtree(root, ignore_errors=True)
    repository = Repository(folder / f"apt-{version}-{architecture}", SUITES[version], architecture)
    repository.unpack(root, f"python{version}-minimal", f"libpython{version}-stdlib", "libc6")
    write_program(program, f"python{version}", architecture)
    return program


def write_program(program: Path, name: str, kind: str) -> None:
    """Write the program `usr/bin/python` of a folder, which starts another program beside it.

    Args:
        program: The file to write.
        name: The program that it starts.
        kind: amd64, arm64 (by qemu) or musl.
    """
    root = program.parents[2]
    if kind == "arm64":
        start = f'"{qemu(root.parent)}" -L "{root}" -0 "$0"'
    else:
        libraries = ":".join(f"{root}/{each}" for each in LIBRARIES[kind])
        start = f'"{root}/{LOADERS[kind]}" --argv0 "$0" --library-path "{libraries}"'
    # The name is passed on, since Python starts further Pythons by the name with which it was started.
    program.unlink(missing_ok=True)
    program.write_text(f'#!/bin/sh\nexec {start} "{program.parent}/{name}" "$@"\n')
    program.chmod(0o755)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        wanted, _, processor = name.partition("-")
        print(python(Path(sys.argv[1]), wanted, processor or "amd64"))
