"""Turns the sources into the archives that `sam build` would make, in milliseconds and with the same bytes for the same sources."""

import hashlib
import io
import py_compile
import sys
import sysconfig
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Archive:
    content: bytes

    @property
    def key(self) -> str:
        return f"{hashlib.sha256(self.content).hexdigest()}.zip"


def folder(source: Path, prefix: str = "") -> Archive:
    """A function's or a layer's folder. Bytecode goes with it, because a worker unpacks into a new directory each time it starts."""
    entries: dict[str, bytes] = {}
    for path in sorted(source.rglob("*")):
        name = path.relative_to(source)
        if path.is_dir() or "__pycache__" in name.parts or path.suffix == ".pyc":
            continue
        entries[f"{prefix}{name.as_posix()}"] = path.read_bytes()
        if path.suffix == ".py":
            cached = name.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.pyc"
            entries[f"{prefix}{cached.as_posix()}"] = _bytecode(path, f"{prefix}{name.as_posix()}")
    return _archive(entries)


def our_packages() -> Archive:
    """The dependencies layer of a laptop: not 100 MB to unpack for every worker, but a pointer at the environment we run in.

    A layer's lib/pythonX.Y/site-packages is a site directory, whose .pth files are read; the line puts our packages before the
    emulator's own, in the workers only.
    """
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    line = f"import sys; sys.path.insert(0, {sysconfig.get_path('purelib')!r})\n"
    return _archive({f"python/lib/{version}/site-packages/tidemark_local.pth": line.encode()})


def _bytecode(path: Path, shown: str) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "code.pyc"
        try:
            py_compile.compile(
                str(path), str(target), dfile=shown, doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
            )
        except py_compile.PyCompileError as error:
            raise SyntaxError(error.msg) from error
        return target.read_bytes()


def _archive(entries: dict[str, bytes]) -> Archive:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content)
    return Archive(buffer.getvalue())
