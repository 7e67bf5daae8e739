"""Random libraries and streams of the kind that `generator` seldom draws.

In comes a number; out goes a `Scenario`, as there. Each seed leans to some of the *corners*: deep
trees, many labels that change, long chains, windows with timers, ports that exclude each other or
overlap in many ways, keys that differ from port to port, guards of several events, nulls and equal
times everywhere, time that goes backwards.
"""

from __future__ import annotations

from typing import Any

from .generator import DURATIONS, KINDS, SECOND, Drawing, PortDraft, RuleDraft, TypeDraft

CORNERS = (
    "deep",
    "labels",
    "chains",
    "windows",
    "exclusive",
    "keys",
    "guards",
    "nulls",
    "ties",
    "backwards",
    "subtypes",
    "timers",
)
MOST_PORTS = 8
SHORT = {"1 ms": 0.001, "250 ms": 0.25, "750 ms": 0.75, **DURATIONS, "1 min": 60.0}


class RareDrawing(Drawing):
    """One scenario that leans to a few corners."""

    def __init__(self, seed: int, suffix: str = "") -> None:
        super().__init__(seed, suffix)
        self.corners = frozenset(self.random.sample(CORNERS, self.random.choice([2, 3, 4])))
        if "deep" in self.corners:
            self.depth = self.random.choice([5, 6])
        if "timers" in self.corners:
            self.timers = 0.5
        if "labels" in self.corners:
            self.changes = 0.8

    # --- types and ports --------------------------------------------------------------------------

    def draw_types(self) -> None:
        super().draw_types()
        if "subtypes" in self.corners:
            below = self.random.choice([each for each in self.types if each.name[0] != "O"])
            for name in ("G", "H", "I"):
                below = TypeDraft(name + self.suffix, below, [])
                self.types.append(below)

    def draw_rule(self) -> RuleDraft:
        rule = super().draw_rule()
        if "exclusive" in self.corners:
            self.exclude(rule)
        if self.chance(0.3):
            while len(rule.ports) < MOST_PORTS and self.chance(0.8):
                type_ = self.random.choice(rule.types)
                name = "abcdefgh"[len(rule.ports)]
                where = f" where {self.predicate(type_.attributes, 3)}" if self.chance(0.5) else ""
                rule.ports.append(PortDraft(name, type_, f"{type_.name} {name}{where}"))
        return rule

    def exclude(self, rule: RuleDraft) -> None:
        """Ports of one type whose predicates never hold together, or nearly always."""
        counted = [each for each in self.types if {"V", "K", "L"} & set(each.attributes)]
        if not counted:
            return
        type_ = self.random.choice(counted)
        attribute = next(name for name in type_.attributes if name in ("V", "K", "L"))
        sign = self.random.choice(["=", "=", ">=", "<", "!="])
        for number, port in enumerate(rule.ports):
            if port.type is not None:
                port.type = type_
                port.text = f"{type_.name} {port.name} where {attribute} {sign} {number % 4}"

    def by_clause(self, rule: RuleDraft) -> str:
        if "keys" not in self.corners:
            return super().by_clause(rule)
        for _ in range(10):
            if clause := super().by_clause(rule):
                return clause
        return ""

    # --- filters ----------------------------------------------------------------------------------

    def filter_text(self, rule: RuleDraft) -> str:
        text = super().filter_text(rule)
        if "windows" in self.corners and " within " not in text:
            head, brace, body = text.partition("\n{")
            text = f"{head} within {self.random.choice(list(SHORT))}{brace}{body}"
        return text

    def filter(self, rule: RuleDraft, depth: int, labels: bool = True) -> str:
        most = 12 if "labels" in self.corners else 6
        if labels and len(rule.labels) < most and "labels" in self.corners and self.chance(0.35):
            label = f"l{len(rule.labels) + 1}"
            rule.labels.append(label)
            return f"{label}:({self.filter(rule, depth)})"
        if "chains" in self.corners and depth > 0 and self.chance(0.3):
            ports = [self.random.choice(rule.ports).name for _ in range(8)]
            if self.chance(0.5):
                repeated = self.filter(rule, min(depth - 1, 1), labels=False)
                return f"({repeated}){{{self.random.choice([4, 8, 9, 13])}}}"
            return self.random.choice([" ; ", " ; ", " + ", " | "]).join(ports)
        return super().filter(rule, depth, labels)

    # --- ECL --------------------------------------------------------------------------------------

    def ecl(self, rule: RuleDraft, depth: int) -> str:
        if "guards" in self.corners and depth > 1 and self.chance(0.35):
            modes = " ".join(
                f"in ({self.ecl(rule, self.random.choice([0, 1, 1, 2]))})"
                f" do {{ {self.ecl(rule, depth - 1)} }}"
                for _ in range(self.random.randint(2, 4))
            )
            return f"modes {{ {modes} }}"
        if "chains" in self.corners and depth > 0 and self.chance(0.15):
            kind = self.random.choice(["repeat", "persist", "loop"])
            return f"{kind}({self.random.choice([4, 7, 20])}) {{ {self.ecl(rule, depth - 1)} }}"
        return super().ecl(rule, depth)

    def ecl_text(self, rule: RuleDraft) -> str:
        # The tree of a deep expression is wide as well, and the oracle asks every state of it.
        deepest, self.depth = self.depth, min(self.depth, 4)
        text = super().ecl_text(rule)
        self.depth = deepest
        return text

    # --- the stream -------------------------------------------------------------------------------

    def draw_events(self) -> list[dict[str, Any]]:
        events = super().draw_events()
        for event in events:
            data = event["data"]
            for name in data:
                if "nulls" in self.corners and self.chance(0.3):
                    data[name] = None
                elif KINDS[name] == "string" and self.chance(0.1):
                    data[name] = self.random.choice(["é", "x,y", '"', "\n", "null", "1", " "])
            if self.chance(0.1):
                data["More"] = self.random.choice([1, "x", None, {"K": 1}, [1, 2]])
        if "ties" in self.corners:
            for event in events:
                seconds = self.time_of(event) // SECOND
                event["time"] = f"1970-01-01T00:{seconds // 60:02}:{seconds % 60:02}Z"
        if "backwards" in self.corners and events:
            for _ in range(len(events) // 4):
                one, other = self.random.choice(events), self.random.choice(events)
                one["time"], other["time"] = other["time"], one["time"]
        return events
