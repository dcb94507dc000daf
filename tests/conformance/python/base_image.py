"""Writes a root file system as a tar archive to stdout, made of this machine's own files: an image to build on where no image registry is.

    python base_image.py openenv uvicorn | podman import - localhost/palestra-test/python

It holds busybox, and this interpreter with the named packages and all that they require, as installed here. The commands that
Dockerfiles of OpenEnv's scaffold call for are there as well and find their work done: `apt-get` has nothing to install, `uv sync` makes a virtual
environment over the packages, `uvicorn` starts.
"""

import importlib.metadata
import io
import os
import re
import subprocess
import sys
import sysconfig
import tarfile

BUSYBOX = "/bin/busybox"
PACKAGES = "/opt/packages"
NOTHING = "#!/bin/sh\nexit 0\n"
UV = """#!/bin/sh
[ "$1" = sync ] || { echo "uv: only sync is here" >&2; exit 2; }
[ -d .venv ] || python3 -m venv --without-pip .venv
"""
UVICORN = '#!/bin/sh\nexec python3 -m uvicorn "$@"\n'
SKIPPED = re.compile(r"/(test|idlelib|tkinter|lib2to3|ensurepip|config-[^/]*|site-packages|dist-packages)(/|$)")


class Archive:
    def __init__(self, output):
        self.tar = tarfile.open(fileobj=output, mode="w|", dereference=True)
        self.there = set()

    def add(self, source: str, target: str) -> None:
        if target in self.there:
            return
        self.there.add(target)
        info = self.tar.gettarinfo(source, target.lstrip("/"))
        # One file that is linked twice is two files here.
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", os.path.getsize(source)
        info.uid = info.gid = 0
        # Compiled files name the time of their source in whole seconds.
        info.mtime = int(info.mtime)
        with open(source, "rb") as content:
            self.tar.addfile(info, content)

    def text(self, target: str, content: str, mode: int = 0o644) -> None:
        data = content.encode()
        info = tarfile.TarInfo(target.lstrip("/"))
        info.size, info.mode = len(data), mode
        self.tar.addfile(info, io.BytesIO(data))

    def link(self, target: str, to: str) -> None:
        info = tarfile.TarInfo(target.lstrip("/"))
        info.type, info.linkname = tarfile.SYMTYPE, to
        self.tar.addfile(info)

    def folder(self, target: str, mode: int = 0o755) -> None:
        info = tarfile.TarInfo(target.lstrip("/"))
        info.type, info.mode = tarfile.DIRTYPE, mode
        self.tar.addfile(info)

    def tree(self, source: str, target: str) -> None:
        for folder, folders, files in os.walk(source):
            folders[:] = [name for name in folders if not SKIPPED.search(f"/{name}")]
            for name in files:
                place = os.path.join(folder, name)
                if os.path.isfile(place):
                    self.add(place, os.path.join(target, os.path.relpath(place, source)))

    def libraries(self, binaries: list[str]) -> None:
        """What the loader needs, where it looks for it."""
        listed = subprocess.run(["ldd", *binaries], capture_output=True, text=True).stdout
        for library in sorted(set(re.findall(r"(?:^|\s)(/[^ :\n]+\.so[^ :\n]*)", listed))):
            if not library.startswith(sysconfig.get_path("purelib")) and library not in binaries:
                self.add(library, library)


def base(archive: Archive) -> None:
    for name in ("etc", "root", "proc", "sys", "dev", "usr/bin", "usr/lib", "app"):
        archive.folder(name)
    archive.folder("tmp", 0o1777)
    archive.text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000:node:/tmp:/bin/sh\n")
    archive.text("etc/group", "root:x:0:\nnode:x:1000:\n")
    archive.text("etc/nsswitch.conf", "hosts: files dns\n")
    archive.add(BUSYBOX, "/bin/busybox")
    for applet in subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split():
        if applet != "busybox":
            archive.link(f"bin/{applet}", "busybox")
    archive.libraries([BUSYBOX])


def python(archive: Archive, names: list[str]) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    executable, library = os.path.realpath(sys._base_executable), sysconfig.get_path("stdlib")
    archive.add(executable, f"/usr/local/bin/{version}")
    archive.link("usr/local/bin/python3", version)
    archive.link("usr/local/bin/python", version)
    archive.tree(library, f"/usr/local/lib/{version}")
    for name, content in {"apt-get": NOTHING, "uv": UV, "uvicorn": UVICORN}.items():
        archive.text(f"usr/local/bin/{name}", content, 0o755)
    dynamic = os.path.join(library, "lib-dynload")
    binaries = [executable, *(os.path.join(dynamic, name) for name in os.listdir(dynamic) if name.endswith(".so"))]
    for distribution in required(names):
        for file in distribution.files or []:
            place = str(distribution.locate_file(file))
            # Commands of a virtual environment name its interpreter.
            if os.path.isfile(place) and ".." not in file.parts:
                archive.add(place, f"{PACKAGES}/{file}")
                if place.endswith(".so"):
                    binaries.append(place)
    archive.libraries(binaries)


def required(names: list[str]) -> list[importlib.metadata.Distribution]:
    """The distributions of these names and all that they ask for; what is not installed is not needed here."""
    from packaging.requirements import Requirement

    found: dict[str, importlib.metadata.Distribution] = {}
    done: set[tuple[str, str]] = set()
    waiting = [(name, "") for name in names]
    while waiting:
        name, extra = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if (key, extra) in done:
            continue
        done.add((key, extra))
        try:
            found[key] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for text in found[key].requires or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                waiting += [(requirement.name, wanted) for wanted in ("", *requirement.extras)]
    return list(found.values())


def main(arguments: list[str]) -> None:
    archive = Archive(sys.stdout.buffer)
    base(archive)
    python(archive, arguments)
    archive.tar.close()


main(sys.argv[1:])
