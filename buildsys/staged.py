"""Where an action writes its outputs, and which of them it wrote.

Knows patterns and files; nothing of how the action was carried out. Each output has a folder of its own in staging, so
that the code finds a path that ends as the output will; an origin gets the folder, and its shards are read off it.
"""

from __future__ import annotations

from pathlib import Path

from buildsys.errors import FAILED, BuildError
from buildsys.model import NO_SHARD, ActionId, Output, Rule, Shard
from buildsys.spec.pattern import fill, shard_part
from buildsys.state.looks import Looks
from buildsys.state.patterns import matches


def targets(rule: Rule, action: ActionId, profile: str, staging: Path) -> dict[str, Path]:
    """Output name -> the path that the code gets. The folder above is made; the path itself only for an origin."""
    paths = {}
    for output in rule.outputs:
        folder = staging / output.name
        folder.mkdir(parents=True)
        name = fill(output.pattern, {"profile": profile, "shard": action.shard}).rpartition("/")[2]
        paths[output.name] = folder if _makes_shards(rule, output) else folder / name
    return paths


def written(rule: Rule, output: Output, target: Path) -> list[tuple[Shard, Path]]:
    """The files or folders that an action left for an output, an origin's by shard in natural order.

    Raises BuildError where there is none, or one that no shard can be.
    """
    if _makes_shards(rule, output):
        return _shards_written(output, target)
    if not target.exists():
        raise BuildError(
            f'it ended well but did not make its output "{output.name}"',
            place=output.place,
            hint=f"write to the path that `{output.name}` holds when the code is called",
            exit_code=FAILED,
        )
    return [(NO_SHARD, target)]


def _shards_written(output: Output, folder: Path) -> list[tuple[Shard, Path]]:
    tail = shard_part(output.pattern)
    made = {shard: folder / path for shard, path in matches(Looks(folder), tail).items()}
    files = {file for file in folder.rglob("*") if file.is_file()}
    strays = files.difference(*({path, *path.rglob("*")} for path in made.values()))
    if strays or not made:
        raise BuildError(
            f"it made {min(strays).relative_to(folder)}, which is no {tail}"
            if strays
            else f'it made no shard of its output "{output.name}"',
            place=output.place,
            hint=f"write files called {tail} into the folder that `{output.name}` holds when the code is called",
            exit_code=FAILED,
        )
    return list(made.items())


def _makes_shards(rule: Rule, output: Output) -> bool:
    return rule.is_origin and "{shard}" in output.pattern
