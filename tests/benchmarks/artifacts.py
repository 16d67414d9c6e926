"""The cost of artifacts: reading archives, the cache on disk, and kustomizations compared with `kubectl kustomize`.

Archives are compared with the standard library, which reads the same bytes without the checks. The kustomization is the
largest of the corpus; kubectl's figure is a process per build, which is what a controller without ours would pay.
"""

from __future__ import annotations

import asyncio
import io
import random
import shutil
import statistics
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from hortus.render.archive import Folder, Tree, pack_tgz, pack_zip, read_archive
from hortus.render.artifacts import ArtifactCache, Sink, digest_of
from hortus.render.kustomize import build

CORPUS = Path(__file__).resolve().parents[1] / "render" / "kustomize" / "corpus"
CASE = "the-same-base-twice-under-two-prefixes/overlay"
FILES, FILE_BYTES = 200, 10_000
ROUNDS = 15

Figures = dict[str, dict[str, float]]


def _median_ms(step: Callable[[], object], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        step()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def _tree() -> Tree:
    """Text that compresses as manifests do, some six times."""
    chance = random.Random(1)
    words = ["apiVersion", "spec", "containers", "name", "image", "value", "true", "- ", "  ", ": ", "\n"]
    text = [" ".join(chance.choices(words, k=FILE_BYTES // 6)).encode()[:FILE_BYTES] for _ in range(FILES)]
    return Tree({f"chart/templates/{number}.yaml": data for number, data in enumerate(text)})


def _library_tgz(data: bytes) -> None:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None
            file.read()


def _library_zip(data: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            archive.read(name)


def _archives() -> Figures:
    tree = _tree()
    tgz, zipped = pack_tgz(tree), pack_zip(tree)
    return {
        f"tgz of {FILES} files, {FILES * FILE_BYTES >> 20} MiB": {
            "read, ms": _median_ms(lambda: read_archive(tgz)),
            "standard library, ms": _median_ms(lambda: _library_tgz(tgz)),
        },
        "zip of the same": {
            "read, ms": _median_ms(lambda: read_archive(zipped)),
            "standard library, ms": _median_ms(lambda: _library_zip(zipped)),
        },
    }


async def _cached(folder: Path) -> Figures:
    cache = ArtifactCache(folder)
    data = random.Random(2).randbytes(100_000)
    digest = digest_of(data)

    async def fill(sink: Sink) -> None:
        sink.write(data)

    began = time.perf_counter()
    await cache.fetch(digest, fill)
    first = (time.perf_counter() - began) * 1e3
    times = []
    for _ in range(200):
        began = time.perf_counter()
        await cache.fetch(digest, fill)
        times.append((time.perf_counter() - began) * 1e3)
    return {
        "cache, 100 kB": {
            "store with sync, ms": first,
            "fetch again, verified, ms": statistics.median(times),
            "read alone, ms": _median_ms(lambda: cache.read(digest), 200),
        }
    }


def _kustomizations() -> Figures:
    figures = {"build, ms": _median_ms(lambda: build(Folder(CORPUS), CASE))}
    kubectl = shutil.which("kubectl")
    if kubectl is not None:
        command = [kubectl, "kustomize", str(CORPUS / CASE)]
        figures["kubectl kustomize, ms"] = _median_ms(
            lambda: subprocess.run(command, capture_output=True, check=True), 7
        )
        figures["times faster"] = figures["kubectl kustomize, ms"] / figures["build, ms"]
    return {f"kustomization of {len(build(Folder(CORPUS), CASE))} objects": figures}


def run() -> Figures:
    """Medians of one run."""
    with tempfile.TemporaryDirectory() as folder:
        return _archives() | asyncio.run(_cached(Path(folder, "cache"))) | _kustomizations()


if __name__ == "__main__":
    for subject, values in run().items():
        print(subject, {name: round(value, 3) for name, value in values.items()})
