"""The reference, part two: what builds have done so far, and so what the next one may do and has to leave behind.

Knows the actions of a clean build (`model`) and what was seen of the builds before; nothing of the engine. It keeps the
keys that were ever completed, the texts that the store has, and the files that are in the workspace.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tests.fuzz.model import Action, Content, Given, Made, Who, objects_of
from tests.fuzz.world import Rule, World


@dataclass(frozen=True)
class Permit:
    """What a build may do with one action: whether its function is called, and how the action may end.

    is_luck: which it is depends on what comes first: another action of the build has its key, or makes what it lost.
    """

    calls: frozenset[bool]
    outcomes: frozenset[str]
    is_luck: bool = False


class Chronicle:
    """One project's past.

    disk: path -> what is there below the folder of outputs. stored: text -> whether its object is sound; lost ones are
    not in it.
    """

    def __init__(self) -> None:
        self.disk: dict[str, Content] = {}
        self.stored: dict[str, bool] = {}
        self._doubtful: dict[str, Content] = {}
        self._done: set[str] = set()
        self._done_narrow: set[str] = set()
        self._placed: defaultdict[str, dict[str, set[str]]] = defaultdict(dict)
        self._held: defaultdict[str, dict[Who, set[str]]] = defaultdict(dict)

    # ------------------------------------------------------------ before a build

    def permits(self, world: World, actions: Mapping[Who, Action], target: str) -> dict[Who, Permit]:
        """target: the rule that is asked for by name, "" for none."""
        makers = Counter(text for action in actions.values() for text in _objects(action))
        keys = Counter(action.key.wide for action in actions.values() if action.key)
        permits = {who: self._permit(world, action, makers, keys) for who, action in actions.items()}
        for who in reversed(actions):
            if self._is_dropped(world, actions[who]):
                permits[who] = self._permit_dropped(actions, permits, who, is_asked=who.rule == target)
        return permits

    def _permit(self, world: World, action: Action, makers: Counter[str], keys: Counter[str]) -> Permit:
        if action.key is None:
            return _permit({False}, action.fate)
        if action.fate == "fails":
            return _permit({True}, "failed")
        ended = {"failed"} if action.fate == "unchecked" else set()
        if action.key.wide not in self._done:
            # Of equal keys one is enough, whichever; and a narrow key that was done may be as good.
            is_sure = action.key.narrow not in self._done_narrow and keys[action.key.wide] == 1
            calls = {True} if is_sure else {True, False}
            outcomes = ended or {"ran", *({"reused", "restored"} if False in calls else ())}
            return Permit(frozenset(calls), frozenset(outcomes), keys[action.key.wide] > 1)
        absent = self._absent(action)
        needed = action.made if world.rules[action.who.rule].check else absent
        if all(self._is_sound(made.content) for made in needed):
            return _permit({False}, *(ended or {"restored" if absent else "reused"}))
        # Stored bytes were lost. Where another action makes the same, it depends on which of them comes first.
        is_shared = any(makers[text] > 1 for made in action.made for text in objects_of(made.content))
        if is_shared or needed is not absent:
            return Permit(frozenset({True, False}), frozenset(ended or {"ran", "restored", "reused"}), is_shared)
        return _permit({True}, *(ended or {"ran"}))

    def _permit_dropped(
        self, actions: Mapping[Who, Action], permits: Mapping[Who, Permit], who: Who, *, is_asked: bool
    ) -> Permit:
        """It runs where something that runs reads what is not there. Bytes under another profile may do as well."""
        absent = {made.role for made in self._absent(actions[who])}
        calls = {False, True} if is_asked else {False}
        users = [user for user in actions if any(_reads(given, who, absent) for given in actions[user].given)]
        sure = is_asked or any(permits[user].calls == {True} for user in users)
        if sure or any(True in permits[user].calls for user in users):
            there = set(map(repr, self.disk.values()))
            is_elsewhere = any(repr(made.content) in there for made in self._absent(actions[who]))
            calls = {True} if sure and not is_elsewhere else {True, False}
        return _permit(calls, *({"ran"} if True in calls else ()), *({"reused"} if False in calls else ()))

    def _is_dropped(self, world: World, action: Action) -> bool:
        is_known = action.key is not None and action.key.wide in self._done
        return world.rules[action.who.rule].ephemeral and is_known and bool(self._absent(action))

    def _absent(self, action: Action) -> list[Made]:
        return [made for made in action.made if self.disk.get(made.path) != made.content]

    def _is_sound(self, content: Content) -> bool:
        return all(self.stored.get(text, False) for text in objects_of(content))

    # ------------------------------------------------------------ after it

    def take(
        self, profile: str, world: World, actions: Mapping[Who, Action], seen: Mapping[Who, str], called: Counter[Who]
    ) -> None:
        """What a build did. seen: how each action ended. called: how often each function was called."""
        stored_before = set(self.stored)
        for who, action in actions.items():
            if called[who]:
                self._called(action, is_stored=not world.rules[who.rule].ephemeral)
        for who, action in actions.items():
            if seen[who] not in ("ran", "restored", "reused"):
                continue
            if not world.rules[who.rule].ephemeral:
                self._published(action, stored_before, anew=seen[who] == "ran")
            elif seen[who] == "ran" or self._absent(action):
                self._lent(action, is_made=seen[who] == "ran")
            self._held[profile][who] = {made.path for made in action.made}
            for made in action.made:
                self._placed[profile].setdefault(made.path, set()).add(repr(made.content))

    def _called(self, action: Action, *, is_stored: bool) -> None:
        """Its inputs were read from the store, which what is in the workspace mends; its outputs are there now."""
        for given in action.given:
            for _, content in given.files if given.is_stored else ():
                self.stored |= dict.fromkeys(objects_of(content), True)
        if action.fate in ("good", "unchecked"):
            assert action.key
            self._done.add(action.key.wide)
            self._done_narrow.add(action.key.narrow)
            if is_stored:
                self.stored |= dict.fromkeys(_objects(action), True)

    def _published(self, action: Action, stored_before: set[str], *, anew: bool) -> None:
        """What is in the way is kept, unless it is the build's own; which it may have become in this very build."""
        for made in action.made:
            before = self.disk.get(made.path)
            if before == made.content and not anew:
                continue
            if before is None or self._was_placed(made.path, before):
                pass
            elif not self._is_stored(before):
                self.disk[self._free_name(made.path)] = before
            elif objects_of(before)[0] not in stored_before:
                self._doubtful[self._free_name(made.path)] = before
            self.disk[made.path] = made.content

    def _lent(self, action: Action, *, is_made: bool) -> None:
        """Ephemeral outputs are put in place; where they are dropped, nothing else lies there either."""
        for made in action.made:
            before = self.disk.pop(made.path, None)
            is_ours = before is None or self._was_placed(made.path, before) or self._is_stored(before)
            if before is not None and before != made.content and not is_ours:
                self.disk[self._free_name(made.path)] = before
            if is_made or before == made.content:
                self.disk[made.path] = made.content

    def tidied(self, profile: str, world: World, actions: Mapping[Who, Action]) -> None:
        """After a good build of everything, what no rule makes any more is gone, but for what was edited by hand."""
        wanted = {who.rule for who in actions}
        held = self._held[profile]
        for who in list(held):
            if who.rule not in world.rules or (who.rule in wanted and who not in actions):
                del held[who]
        for path in self._placed[profile].keys() - set().union(*held.values()):
            content = self.disk.get(path)
            if content is None:
                continue
            is_lent = any(_may_make(rule, path) for rule in world.rules.values() if rule.ephemeral)
            if self._was_placed(path, content) if is_lent else self._is_stored(content):
                del self.disk[path]

    def _is_stored(self, content: Content) -> bool:
        """Bytes that the store knows may be thrown away; of a folder its listing counts."""
        return objects_of(content)[0] in self.stored

    def _was_placed(self, path: str, content: Content) -> bool:
        """A build put it there."""
        return any(repr(content) in placed.get(path, ()) for placed in self._placed.values())

    def _free_name(self, path: str) -> str:
        n = 1
        while f"{path}.mine-{n}" in self.disk:
            n += 1
        return f"{path}.mine-{n}"

    def files(self, found: Collection[str]) -> dict[str, str]:
        """Path -> text of every file that has to be below the folder of outputs, and of no other.

        found: the paths that are there, which settles what depended on the order of things.
        """
        for path, content in self._doubtful.items():
            if path in found or any(other.startswith(f"{path}/") for other in found):
                self.disk[path] = content
        self._doubtful.clear()
        return dict(_files(self.disk))


def _files(disk: Mapping[str, Content]) -> Iterator[tuple[str, str]]:
    for path, content in disk.items():
        if isinstance(content, str):
            yield path, content
        else:
            yield from ((f"{path}/{name}", text) for name, text in content)


def _reads(given: Given, maker: Who, roles: set[str]) -> bool:
    """An ephemeral output of the maker is among it, in one of these roles."""
    return any(who == maker and role in roles for who, (_, role) in zip(given.makers, given.lent, strict=False))


def _may_make(rule: Rule, path: str) -> bool:
    patterns = [re.sub(r"\\{\w+\\}", "[^/]+", re.escape(output.pattern)) for output in rule.outputs]
    return any(re.fullmatch(pattern, path) for pattern in patterns)


def _objects(action: Action) -> list[str]:
    return [text for made in action.made for text in objects_of(made.content)]


def _permit(calls: set[bool], *outcomes: str) -> Permit:
    return Permit(frozenset(calls), frozenset(outcomes))
