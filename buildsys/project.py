"""A project on disk: where it is, and its rules and sources as they are at this moment.

Knows the file system and the pure stages; knows nothing of results, workers or the manifest.
"""

from __future__ import annotations

import io
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from buildsys.errors import BuildError, Place, excerpt_of
from buildsys.model import NO_LIMITS, Limits
from buildsys.request import AS_WRITTEN, DEFAULT_PROFILE, Variation
from buildsys.source_tree import SourceTree
from buildsys.spec.config import Config
from buildsys.spec.declared import Declared
from buildsys.spec.graph import Graph
from buildsys.spec.project_tables import limited
from buildsys.spec.rulefile import read_configs, read_rules
from buildsys.spec.variation import profile_of
from buildsys.state.looks import Looks
from buildsys.state.root import STATE, find_root, rule_files

PASSED_ON = (
    "PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TZ TMPDIR XDG_CACHE_HOME HF_HOME HF_HUB_OFFLINE SSL_CERT_FILE "
    "HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES CUDA_HOME "
    "OMP_NUM_THREADS MKL_NUM_THREADS OPENBLAS_NUM_THREADS OPENBLAS_CORETYPE OPENBLAS_L2_SIZE"
).split()
"""Variables that every action gets and no key holds; all others must be declared by a rule's `env`."""


class Project:
    """The folder that buildsys runs in."""

    def __init__(self, root: Path, variation: Variation = AS_WRITTEN) -> None:
        """variation: what this request makes of the configs; it decides rules, keys and paths alike."""
        self.root = root
        self.state = root / STATE
        self.variation = variation

    @classmethod
    def find(cls, start: Path, variation: Variation = AS_WRITTEN) -> Project:
        """The project that `start` lies in: the nearest folder upward that holds `rules/`."""
        return cls(find_root(start), variation)

    def under(self, variation: Variation) -> Project:
        """The project as it is at the same moment under another variation of its configs."""
        other = Project(self.root, variation)
        other.looks, other.tree = self.looks, self.tree
        return other

    def declared(self) -> Declared:
        """All rule files, read and checked. Raises BuildError with file and line."""
        return read_rules(self._rule_texts(), self._config_text, self.variation, self._overlays)

    def configs(self) -> dict[str, Config]:
        """The configs that the rule files name, by path, as this variation has them. Raises BuildError."""
        return read_configs(self._rule_texts(), self._config_text, self.variation, self._overlays)

    def profiles(self) -> list[str]:
        """`default`, then all profiles that have an overlay for a config, sorted. Raises BuildError."""
        named = {profile for config in self.under(AS_WRITTEN).configs() for profile in self._overlays(config)}
        return [DEFAULT_PROFILE, *sorted(named - {DEFAULT_PROFILE})]

    def graph(self, limits: Limits = NO_LIMITS) -> Graph:
        """The rules, checked against one another. Raises BuildError with file, line and excerpt.

        limits: those that win over the declared ones.
        """
        with self.excerpts():
            return Graph(limited(self.declared(), limits))

    @contextmanager
    def excerpts(self) -> Iterator[None]:
        """Errors that say where but can't read the file, as the pure stages can't, get the lines there."""
        try:
            yield
        except BuildError as error:
            place = error.place
            if place and place.line and not error.excerpt and (self.root / place.path).is_file():
                text = (self.root / place.path).read_text(encoding="utf-8", errors="replace")
                error.excerpt = excerpt_of(text, place.line)
            raise

    def _overlays(self, config: str) -> list[str]:
        """The profiles that have an overlay for this config."""
        names = self.looks.names(posixpath.dirname(config))
        return sorted(profile for name in names if (profile := profile_of(config, name)))

    def _rule_texts(self) -> dict[str, str]:
        return {path: self.text(path) for path in rule_files(self.looks)}

    def _config_text(self, path: str) -> str | None:
        return self.text(path) if self.looks.is_file(path) else None

    @cached_property
    def looks(self) -> Looks:
        return Looks(self.root)

    @cached_property
    def tree(self) -> SourceTree:
        return SourceTree(self.looks)

    def text(self, path: str) -> str:
        """A file of the project. Raises BuildError where it can't be read."""
        try:
            return io.TextIOWrapper(io.BytesIO(self.looks.read(path)), encoding="utf-8").read()
        except OSError as error:
            raise BuildError(f"can't be read: {error.strerror}", place=Place(path)) from None
        except UnicodeDecodeError as error:
            raise BuildError(f"not UTF-8: {error.reason} at byte {error.start}", place=Place(path)) from None


def action_environment(variables: Sequence[str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The whole environment of an action: the fixed list, what its rule declares, and one order for sets of strings."""
    return {"PYTHONHASHSEED": "0"} | {name: environ[name] for name in (*PASSED_ON, *variables) if name in environ}
