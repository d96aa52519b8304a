"""Pythons that no package has, built from the sources in Debian's: free-threaded ones, and those for musl.

    python .github/release/source_pythons.py target/pythons 3.14t 3.14-musl 3.14t-musl

For this machine's C library the machine's C compiler builds, against the headers and libraries of Debian's packages. For
musl zig builds (requirements/release.txt), zlib and OpenSSL too, and Debian's musl is the loader. As in
debian_pythons.py nothing is installed, and `usr/bin/python` of a Python's folder starts it. What is not needed to run
tests is left out: these Pythons are not optimised.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import debian_pythons
from debian_pythons import Repository, write_program

if TYPE_CHECKING:
    from collections.abc import Mapping

# The releases of Debian: of the sources of Python, of the libraries that a Python for glibc is linked with (the older
# they are, the more machines run it), and of musl, zlib and OpenSSL.
SUITE, GLIBC_SUITE, MUSL_SUITE = "forky", "bookworm", "trixie"
VERSION = "3.14"
TRIPLE = "x86_64-linux-musl"
COMMON = ("--without-ensurepip", "--disable-test-modules", "--without-static-libpython")
# The bytes of .pyc files would take longer than the compiler; Python compiles the few modules that tests import.
INSTALL = ("make", "install", "COMPILEALL_OPTS=-x .")
# No code of these is under a test: Kafka's tests here use no TLS, but kafka-python imports the module `ssl`.
WITHOUT = (
    "shared module engine legacy asm apps docs tests comp ssl3 dtls quic cmp cms ct ts srp gost sm2 sm3 sm4 aria camellia "
    "idea seed cast bf rc2 mdc2 whirlpool ml-dsa ml-kem slh-dsa"
)


def run(command: tuple[str, ...], folder: Path, environ: Mapping[str, str] | None = None) -> None:
    """Run a step of a build in a folder; its output is shown only if it fails.

    Raises:
        CalledProcessError: it failed.
    """
    with tempfile.TemporaryFile("w+") as log:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **(environ or {})}, stdout=log, stderr=log)
        if done.returncode != 0:
            log.seek(0)
            print(log.read()[-5000:], file=sys.stderr)
            raise subprocess.CalledProcessError(done.returncode, command)


def make(*targets: str) -> tuple[str, ...]:
    """A call of make that uses every core of the machine."""
    return ("make", f"-j{os.cpu_count() or 1}", *targets)


def source(folder: Path, suite: str, package: str, into: Path) -> Path:
    """Unpack the source of a Debian package, without Debian's patches, into a new folder."""
    repository = Repository(folder / f"apt-sources-{suite}", suite, "amd64", sources=True)
    archive = repository.source(package)
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    run(("tar", "--extract", "--file", str(archive), "--strip-components=1"), into)
    return into


def free_threaded(folder: Path) -> Path:
    """The program of a free-threaded Python for glibc, built if it is not there yet."""
    root = folder.resolve() / f"{VERSION}t-amd64"
    program = root / "usr" / "bin" / "python"
    if program.exists():
        return program
    shutil.rmtree(root, ignore_errors=True)
    libraries = Repository(folder.resolve() / f"apt-{VERSION}t", GLIBC_SUITE, "amd64")
    libraries.unpack(root, "libc6-dev", "libssl-dev", "zlib1g-dev", "libffi-dev")
    sources = source(folder, SUITE, f"python{VERSION}", folder.resolve() / "sources" / f"python{VERSION}t")
    settings = {
        "CC": f"cc --sysroot={root}",
        "OPT": "-DNDEBUG -fwrapv -O1",
        # It would name the machine's libraries.
        "PKG_CONFIG": "false",
    }
    options = ("--disable-gil", f"--prefix={root}/usr", f"--with-openssl={root}/usr", *COMMON)
    run(("./configure", *options), sources, settings)
    run(make(), sources)
    run(INSTALL, sources)
    write_program(program, f"python{VERSION}t", "amd64")
    return program


def zig_settings(folder: Path) -> dict[str, str]:
    """The variables with which a configure script and make take zig for a compiler for musl."""
    # Only what runs with the packages of requirements/release.txt has it.
    from ziglang import __file__ as found

    zig = Path(found).with_name("zig")
    caches = folder / "zig"
    return {
        "CC": f"{zig} cc -target {TRIPLE}",
        "AR": f"{zig} ar",
        "RANLIB": f"{zig} ranlib",
        # Without optimisation zig adds checks that end the program at undefined behaviour.
        "CFLAGS": "-O1 -fPIC -fno-sanitize=undefined -fwrapv",
        "ZIG_GLOBAL_CACHE_DIR": str(caches / "global"),
        "ZIG_LOCAL_CACHE_DIR": str(caches / "local"),
    }


def musl_libraries(folder: Path, settings: Mapping[str, str]) -> Path:
    """A folder with zlib and OpenSSL for musl, as static libraries with their headers."""
    out = folder / "musl-libraries"
    if (out / "done").exists():
        return out
    shutil.rmtree(out, ignore_errors=True)
    zlib = source(folder, MUSL_SUITE, "zlib", folder / "sources" / "zlib")
    run(("./configure", "--static", f"--prefix={out}"), zlib, settings)
    run(make("libz.a"), zlib, settings)
    run(("make", "install"), zlib, settings)
    openssl = source(folder, MUSL_SUITE, "openssl", folder / "sources" / "openssl")
    without = [f"no-{name}" for name in WITHOUT.split()]
    where = (f"--prefix={out}", f"--openssldir={out}", "--libdir=lib")
    run(("./Configure", "linux-x86_64", *without, *where), openssl, settings)
    run(make("build_libs"), openssl, settings)
    run(("make", "install_dev"), openssl, settings)
    (out / "done").touch()
    return out


def musl(folder: Path, *, free_threaded: bool = False) -> Path:
    """The program of a Python for musl, built if it is not there yet.

    Args:
        folder: Where the Pythons are.
        free_threaded: Whether it is a free-threaded one.
    """
    folder = folder.resolve()
    suffix = "t" if free_threaded else ""
    root = folder / f"{VERSION}{suffix}-musl"
    program = root / "usr" / "bin" / "python"
    if program.exists():
        return program
    shutil.rmtree(root, ignore_errors=True)
    Repository(folder / f"apt-musl{suffix}", MUSL_SUITE, "amd64").unpack(root, "musl", alone=True)
    settings = zig_settings(folder)
    libraries = musl_libraries(folder, settings)
    sources = source(folder, SUITE, f"python{VERSION}", folder / "sources" / f"python{VERSION}{suffix}-musl")
    # This machine runs no program for musl by itself, so that the build takes it for another machine.
    options = (
        f"--host={TRIPLE}",
        "--build=x86_64-linux-gnu",
        f"--with-build-python={debian_pythons.python(folder, VERSION)}",
        *(("--disable-gil",) if free_threaded else ()),
        f"--prefix={root}/usr",
        f"--with-openssl={libraries}",
        *COMMON,
        "ac_cv_file__dev_ptmx=yes",
        "ac_cv_file__dev_ptc=no",
    )
    settings |= {
        # A program that loads modules: by itself zig links statically for musl.
        "LDFLAGS": "-dynamic",
        "OPT": "-DNDEBUG",
        "PKG_CONFIG": "false",
        "ZLIB_CFLAGS": f"-I{libraries}/include",
        "ZLIB_LIBS": f"-L{libraries}/lib -lz",
    }
    run(("./configure", *options), sources, settings)
    run(make(), sources, settings)
    run(INSTALL, sources, settings)
    write_program(program, f"python{VERSION}{suffix}", "musl")
    return program


if __name__ == "__main__":
    for name in sys.argv[2:]:
        threads = name.startswith(f"{VERSION}t")
        if name not in (f"{VERSION}t", f"{VERSION}-musl", f"{VERSION}t-musl"):
            sys.exit(f"{name}: there are {VERSION}t, {VERSION}-musl and {VERSION}t-musl")
        place = Path(sys.argv[1])
        print(musl(place, free_threaded=threads) if name.endswith("-musl") else free_threaded(place))
