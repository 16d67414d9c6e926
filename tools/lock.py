"""Keep locks/*.txt in step with pyproject.toml.

`python tools/lock.py` resolves again (needs `uv`, from the package index, and the network);
`python tools/lock.py --check` works offline: each lock carries a digest of the requirements it was made from, every
pin must carry hashes and no lock may name a download address.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_HEADER = "# requirements digest: "
_ADDRESS = re.compile(r"://|--(?:extra-)?index-url|--find-links")


def requirements() -> dict[str, list[str]]:
    """The requirement lines behind each lock, by lock name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    run = [*project["project"]["dependencies"], *project["dependency-groups"]["build"]]
    return {"run": run, "dev": [*run, *project["dependency-groups"]["dev"]]}


def digest(lines: list[str]) -> str:
    return hashlib.sha256(json.dumps(sorted(lines)).encode()).hexdigest()[:16]


def resolve() -> None:
    with tempfile.TemporaryDirectory() as tool:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--target", tool, "uv"], check=True)
        uv = Path(tool) / "bin" / "uv"
        for name, lines in requirements().items():
            target = ROOT / "locks" / f"{name}.txt"
            pins = ["-c", str(ROOT / "locks" / "run.txt")] if name == "dev" else []
            body = subprocess.run(
                [
                    uv,
                    "pip",
                    "compile",
                    "--quiet",
                    "--universal",
                    "--python-version",
                    "3.11",
                    "--generate-hashes",
                    "--no-annotate",
                    "--no-header",
                    "--no-emit-index-url",
                    *pins,
                    "-",
                ],
                input="\n".join(lines),
                text=True,
                check=True,
                capture_output=True,
            ).stdout
            target.write_text(f"{_HEADER}{digest(lines)}\n{body}")
            print(f"wrote {target.relative_to(ROOT)}")


def drift() -> list[str]:
    found = []
    for name, lines in requirements().items():
        path = ROOT / "locks" / f"{name}.txt"
        text = path.read_text() if path.exists() else ""
        if not text.startswith(_HEADER + digest(lines) + "\n"):
            found.append(f"locks/{name}.txt was made from other requirements than pyproject.toml; run: make lock")
        pins = re.findall(r"^\S+==\S+.*?(?=^\S|\Z)", text, flags=re.M | re.S)
        found += [f"locks/{name}.txt: no hash for {pin.split()[0]}" for pin in pins if "--hash=" not in pin]
        if _ADDRESS.search(text):
            found.append(f"locks/{name}.txt names a download address")
    return found


if __name__ == "__main__":
    if "--check" in sys.argv:
        problems = drift()
        print("\n".join(problems) or "locks: in step")
        sys.exit(bool(problems))
    resolve()
