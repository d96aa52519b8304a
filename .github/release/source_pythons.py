"""A Python for musl, which no package has, built from the sources in Debian's.

    python .github/release/source_pythons.py target/pythons

zig builds it (requirements/release.txt), with zlib; Debian's musl is the loader. OpenSSL for musl comes from a wheel
of psycopg-binary (requirements/musl.txt), and its headers come from Debian: the tests use no TLS, but kafka-python
imports the module `ssl`. As in debian_pythons.py nothing is installed, and `usr/bin/python` of the folder starts
Python. It is not optimised, and lacks what the tests do not need.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import debian_pythons
from debian_pythons import Repository, write_program

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parents[2]
# Sources, musl and headers are of one release of Debian.
SUITE, VERSION = "trixie", "3.13"
TRIPLE = "x86_64-linux-musl"
# uv's name of the platform.
PLATFORM = "x86_64-unknown-linux-musl"


def run(command: tuple[str, ...], folder: Path, environ: Mapping[str, str]) -> None:
    """Run a step of a build in a folder; its output is shown only if it fails.

    Raises:
        CalledProcessError: it failed.
    """
    with tempfile.TemporaryFile("w+") as log:
        done = subprocess.run(command, cwd=folder, env=os.environ | environ, stdout=log, stderr=log)
        if done.returncode != 0:
            log.seek(0)
            print(log.read()[-5000:], file=sys.stderr)
            raise subprocess.CalledProcessError(done.returncode, command)


def source(folder: Path, package: str) -> Path:
    """Unpack the source of a Debian package, without Debian's patches, into a new folder."""
    archive = Repository(folder / "apt-sources", SUITE, "amd64", sources=True).source(package)
    into = folder / "sources" / package
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    unpack = ("tar", "--extract", "--file", str(archive), "--strip-components=1")
    run(unpack, into, {})
    return into


def zig_settings(folder: Path) -> dict[str, str]:
    """The variables with which a configure script and make take zig for a compiler for musl."""
    package = find_spec("ziglang")
    if package is None or package.origin is None:
        sys.exit("zig is missing: run this with the packages of requirements/release.txt, as make try-wheels does.")
    zig, caches = Path(package.origin).with_name("zig"), folder / "zig"
    return {
        "CC": f"{zig} cc -target {TRIPLE}",
        "AR": f"{zig} ar",
        "RANLIB": f"{zig} ranlib",
        # Without optimisation zig adds checks that end the program at undefined behaviour. Python uses
        # `__DATE__`, which zig takes for an error. The OpenSSL of the wheel has no compression.
        "CFLAGS": "-O1 -fPIC -fno-sanitize=undefined -fwrapv -Wno-date-time -DOPENSSL_NO_COMP",
        "ZIG_GLOBAL_CACHE_DIR": str(caches / "global"),
        "ZIG_LOCAL_CACHE_DIR": str(caches / "local"),
    }


def libraries(folder: Path, settings: Mapping[str, str]) -> Path:
    """A folder with zlib and OpenSSL for musl, and their headers: `include` and `lib`."""
    out = folder / "musl-libraries"
    if (out / "done").exists():
        return out
    shutil.rmtree(out, ignore_errors=True)
    zlib = source(folder, "zlib")
    run(("./configure", "--static", f"--prefix={out}"), zlib, settings)
    run(("make", "libz.a"), zlib, settings)
    run(("make", "install"), zlib, settings)
    install = ["uv", "pip", "install", "--quiet", "--python", str(debian_pythons.python(folder, VERSION))]
    install += ["--python-platform", PLATFORM, "--target", str(out / "wheels"), "--require-hashes"]
    subprocess.run([*install, "--requirement", str(ROOT / "requirements" / "musl.txt")], check=True)
    for name in ("libssl", "libcrypto"):
        (found,) = (out / "wheels" / "psycopg_binary.libs").glob(f"{name}-*.so.3")
        # The linker finds `-lssl` by the link; the linked file then names the library as the wheel does.
        shutil.copy(found, out / "lib" / found.name)
        (out / "lib" / f"{name}.so").symlink_to(found.name)
    headers = folder / "openssl-headers"
    shutil.rmtree(headers, ignore_errors=True)
    Repository(folder / "apt-openssl", SUITE, "amd64").unpack(headers, "libssl-dev", alone=True)
    for place in ("usr/include/openssl", "usr/include/x86_64-linux-gnu/openssl"):
        shutil.copytree(headers / place, out / "include" / "openssl", dirs_exist_ok=True)
    (out / "done").touch()
    return out


def musl(folder: Path) -> Path:
    """The program of a Python for musl, built if it is not there yet.

    Args:
        folder: Where the Pythons are.
    """
    folder = folder.resolve()
    root = folder / f"{VERSION}-musl"
    program = root / "usr" / "bin" / "python"
    if program.exists():
        return program
    shutil.rmtree(root, ignore_errors=True)
    settings = zig_settings(folder)
    built = libraries(folder, settings)
    sources = source(folder, f"python{VERSION}")
    Repository(folder / "apt-musl", SUITE, "amd64").unpack(root, "musl", alone=True)
    # This machine cannot run programs for musl by itself. Therefore the build is configured as one for another machine.
    options = (
        f"--host={TRIPLE}",
        "--build=x86_64-linux-gnu",
        f"--with-build-python={debian_pythons.python(folder, VERSION)}",
        f"--prefix={root}/usr",
        f"--with-openssl={built}",
        "--without-ensurepip",
        "--disable-test-modules",
        # The results of programs that configure would run.
        "ac_cv_file__dev_ptmx=yes",
        "ac_cv_file__dev_ptc=no",
        "ac_cv_buggy_getaddrinfo=no",
    )
    settings |= {
        # configure recognises musl by a name in its stdarg.h, but zig has the stdarg.h of clang. Without the name,
        # Python would expect no platform in the file names of modules, and not find the modules in wheels for musl.
        "CPP": f"{settings['CC']} -E -D__DEFINED_va_list",
        # A program that loads modules: by itself zig links statically for musl.
        "LDFLAGS": "-dynamic",
        "OPT": "-DNDEBUG",
        # pkg-config would name the libraries of this machine.
        "PKG_CONFIG": "false",
        "ZLIB_CFLAGS": f"-I{built}/include",
        "ZLIB_LIBS": f"-L{built}/lib -lz",
    }
    run(("./configure", *options), sources, settings)
    run(("make", f"-j{os.cpu_count() or 1}"), sources, settings)
    # No .pyc files: to write all of them takes longer than the compiler does, and tests import few modules.
    run(("make", "install", "COMPILEALL_OPTS=-x ."), sources, settings)
    for found in (built / "lib").glob("*.so.*"):
        shutil.copy(found, root / "usr" / "lib" / TRIPLE / found.name)
    write_program(program, f"python{VERSION}", "musl")
    return program


if __name__ == "__main__":
    print(musl(Path(sys.argv[1])))
