"""What an action in a sandbox may read and write: what its rule declares, its code, its interpreter and the system.

Joins what is known of an action with the sandbox of the kernel. Knows nothing of how it is carried out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from buildsys.assess import Bound
from buildsys.errors import BuildError
from buildsys.handover import Handover
from buildsys.model import ActionId, Rule
from buildsys.prepare import Prepared
from buildsys.run.landlock import SYSTEM
from buildsys.run.process import PROGRAM
from buildsys.run.workers import Sandbox
from buildsys.spec.graph import Graph
from buildsys.spec.names import role_for
from buildsys.state.editable import is_outside

_TEMPORARY: Final = ".temporary"
_LISTS_OF_FOLDERS: Final = ("PATH", "LD_LIBRARY_PATH")
_PATHS: Final = ("CUDA_HOME", "SSL_CERT_FILE")
"""Variables that every action gets, and that say where programs and libraries of the machine lie."""


def sandbox_of(
    root: Path, prepared: Prepared, inputs: Iterable[Bound], handover: Handover, staging: Path, scratch: Path | None
) -> Sandbox:
    """staging: where it writes its outputs; a folder for temporary files is made in it, which has to be removed."""
    temporary = staging / _TEMPORARY
    temporary.mkdir(parents=True, exist_ok=True)
    read = {
        *SYSTEM,
        *_of_machine(prepared.env),
        *prepared.installed.folders,
        str(PROGRAM.parent),
        *_code(root, prepared, handover),
        *(str(path) for bound in inputs for given in bound.given for path in handover.opened(given)),
    }
    write = [staging, *([scratch] if scratch else [])]
    return Sandbox(tuple(sorted(map(os.path.realpath, read))), tuple(map(os.path.realpath, write)), str(temporary))


def _of_machine(env: Mapping[str, str]) -> Iterator[str]:
    for name in _LISTS_OF_FOLDERS:
        yield from filter(os.path.isabs, env.get(name, "").split(os.pathsep))
    yield from filter(None, (env.get(name) for name in _PATHS))


def _code(root: Path, prepared: Prepared, handover: Handover) -> Iterator[str]:
    """Its sources as they are on disk, where tools look for them, and as a command gets them."""
    code = prepared.code
    if code is None:
        return
    yield from (str(root / path) for path in code.sources if not is_outside(path))
    for home in prepared.homes:
        yield from (home.path, f"{home.path}.py")
    if prepared.rule.kind == "shell":
        yield str(root / handover.freeze(code, prepared.homes))


def refusal(root: Path, graph: Graph, rule: Rule, path: str) -> tuple[str, str]:
    """What to say of a path that a sandbox refused, and what to do."""
    real = next((folder for folder in (str(root), os.path.realpath(root)) if path.startswith(f"{folder}/")), "")
    shown = path[len(real) + 1 :] if real else path
    problem = f"its sandbox refused {shown}"
    try:
        maker = graph.target(shown)
    except BuildError:
        if os.path.lexists(path):
            line = f'add {role_for(path)} = "{shown}" to the inputs of [rule.{rule.name}]'
            return problem, f"{line} where it is read; only outputs, scratch and temporary files can be written"
        return problem, "only the paths of outputs, scratch and temporary files (TMPDIR) can be written"
    made_by = maker.rule if isinstance(maker, ActionId) else maker
    return problem, f'{made_by} makes it: add {made_by} = "@{made_by}" to the inputs of [rule.{rule.name}]'
