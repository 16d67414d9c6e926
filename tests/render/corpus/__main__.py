"""Write the golden files with the real engine: `python -m tests.render.corpus`."""

from __future__ import annotations

import base64
import json

from tests.render.corpus import FILES, FOLDER, TOPICS, cases, values
from tests.render.oracles import GoTemplates, find_gotemplate


def main() -> None:
    program = find_gotemplate()
    assert program, "no Go toolchain"
    go = GoTemplates(program)
    files = {name: base64.b64encode(data).decode() for name, data in FILES.items()}
    for topic in TOPICS:
        found = {}
        for case in cases(topic):
            request = {"templates": {"main": case.template}, "main": "main", "data": values(), "files": files}
            output, error = go.ask(kind="helm", **request)
            found[case.template] = {"output": output} if not error else {"error": error}
        target = FOLDER / "golden" / f"{topic}.json"
        target.parent.mkdir(exist_ok=True)
        target.write_text(json.dumps(found, indent=1) + "\n")
    go.close()


main()
