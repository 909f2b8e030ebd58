"""Names of Python and of libraries that are known for what they do, whatever object they are of.

Knows no code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from buildsys.code.scopes import Alias

LOOKS_ONLY: Final = frozenset(
    "get keys values items copy index count format join split rsplit splitlines strip lstrip rstrip lower upper title "
    "startswith endswith replace encode decode partition rpartition find rfind union intersection difference issubset "
    "issuperset isdisjoint isidentifier match fullmatch search sub findall finditer exists is_file is_dir resolve "
    "absolute joinpath relative_to with_name with_suffix as_posix read_text read_bytes hexdigest most_common".split()
)
"""Methods that change nothing."""
INERT: Final = frozenset(
    "staticmethod classmethod property abstractmethod cached_property lru_cache cache wraps contextmanager "
    "asynccontextmanager overload override final setter getter deleter total_ordering no_grad inference_mode".split()
)
"""Decorators that only describe what they decorate, by their last names."""
TAKES_AS_IT_IS: Final = frozenset(
    "isinstance issubclass print str repr type id hash len getattr hasattr setattr callable super list tuple set dict "
    "sorted cast NewType TypeVar field partial map filter defaultdict suppress raises iter next min max sum".split()
)
"""What calls or compares what it is given, and looks at no parts of it."""
ALL_INSTALLED: Final = frozenset(("entry_points", "iter_entry_points", "packages_distributions"))
"""What asks about all distributions."""
PROBES: Final = frozenset(("find_spec", "find_loader", "get_loader"))
ABOUT: Final = frozenset(("version", "distribution", "metadata", "requires", "files", "get_distribution"))
"""What asks whether a module is there, and what asks about a distribution."""
ELSEWHERE: Final = frozenset(("spec_from_file_location", "SourceFileLoader", "load_source", "run_path"))
MODULES: Final = ("sys", "modules")
PLACES: Final = frozenset(("path", "meta_path", "path_hooks"))
IMPORTERS: Final = {"import_module", "__import__"}
IMPORTING: Final = frozenset(
    "import_module __import__ run_module run_path iter_modules walk_packages locate resolve_name import_string".split()
)
LOADERS: Final = IMPORTING - IMPORTERS
NAMESPACE: Final = {"globals", "locals", "eval", "exec", "compile"}
TELLING: Final = ELSEWHERE | IMPORTING | NAMESPACE | {"sys", "addsitedir", "__path__"}


def means_of(alias: Alias) -> set[str]:
    """What an import gives a name to that does things by computed names, where calls of it do not show."""
    means = set()
    if alias.attribute in ELSEWHERE:
        means.add("elsewhere")
    if alias.attribute in (*IMPORTERS, *LOADERS) and alias.attribute != alias.name:
        means.add("import")
    if alias.module == "sys" and (alias.attribute in (*PLACES, "*") or alias.attribute == "" != alias.name):
        means.add("path")
    if alias.module == "sys" and (alias.attribute in ("modules", "*") or alias.attribute == "" != alias.name):
        means |= {"namespace", "modules"}
    return means
