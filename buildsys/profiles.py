"""The profiles of a project: those that an overlay declares, and those that were ever built.

Joins the configs with the published manifest, and only reads.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from buildsys.errors import BuildError
from buildsys.project import Project
from buildsys.request import AS_WRITTEN, Variation
from buildsys.spec.variation import Change, changes
from buildsys.state.manifest import Manifest
from buildsys.state.rows import LastRun


@dataclass(frozen=True)
class Profile:
    """One profile. overlays: the files that make it, none for `default` and for one whose overlay is gone.

    changes: what they give other values. error: rendered, where they can't be laid over. last: None if never built.
    """

    name: str
    overlays: tuple[str, ...]
    changes: tuple[Change, ...]
    error: str
    last: LastRun | None


def profiles(project: Project) -> list[Profile]:
    """`default`, those with an overlay by name, then those that only the manifest knows. Raises BuildError."""
    with closing(Manifest.read(project.state)) as manifest:
        built = manifest.profiles()
    declared = project.profiles()
    gone = [Profile(name, (), (), "", last) for name, last in built.items() if name not in declared]
    return [*(_declared(project, name, built.get(name)) for name in declared), *gone]


def _declared(project: Project, name: str, last: LastRun | None) -> Profile:
    base = project.under(AS_WRITTEN).configs()
    try:
        with project.excerpts():
            configs = project.under(Variation(name)).configs()
    except BuildError as error:
        return Profile(name, (), (), error.render(), last)
    overlays = tuple(config.overlay for config in configs.values() if config.overlay)
    found = tuple(change for path, config in configs.items() for change in changes(base[path], config))
    return Profile(name, overlays, found, "", last)
