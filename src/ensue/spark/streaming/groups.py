"""Groups of rules that share their state in a stream.

In comes the plan of a library; out go groups of rules with one common key, and at most one group,
`together`, for the other rules: rules without a key, rules whose ports have keys of different
names, and rules that read outputs of rules with another key. A keyed group is spread over
independent buckets; the group `together` is one bucket, in one ordered pass.
"""

from __future__ import annotations

from dataclasses import dataclass

from ensue.spark.plan import JobPlan, PlannedRule, RuleGroup

TOGETHER = "together"


@dataclass(frozen=True)
class StreamGroup:
    """Rules that share state; `name` has the key, and finds the state after a restart."""

    name: str
    group: RuleGroup

    @property
    def is_keyed(self) -> bool:
        return self.group.is_keyed

    def buckets(self, count: int) -> int:
        return count if self.is_keyed else 1


def stream_groups(plan: JobPlan) -> tuple[StreamGroup, ...]:
    """The groups, in the order of their first rules in the library."""
    together = {group.number for group in plan.groups if len(group.key_set) != 1}
    for group in plan.groups:
        if group.fed_by:
            feeders = {plan.by_rule[rule.name].number for rule in group.fed_by}
            together |= {group.number, *feeders}
    members: dict[str, list[PlannedRule]] = {}
    key_sets: dict[str, tuple[tuple[str, ...], ...]] = {}
    for group in plan.groups:
        alone = group.number not in together
        key_set = group.key_set if alone else ()
        name = f"by {', '.join(key_set[0])}" if key_set else TOGETHER
        key_sets[name] = key_set
        members.setdefault(name, []).extend(group.rules)
    ordered = sorted(members, key=lambda name: min(rule.number for rule in members[name]))
    return tuple(
        StreamGroup(name, _group(number, key_sets[name], members[name]))
        for number, name in enumerate(ordered)
    )


def _group(
    number: int, key_set: tuple[tuple[str, ...], ...], rules: list[PlannedRule]
) -> RuleGroup:
    in_order = tuple(sorted(rules, key=lambda rule: rule.number))
    return RuleGroup(number, 0, key_set, in_order, ())


def crosses_keys(plan: JobPlan) -> bool:
    """Whether a rule reads outputs of a rule with another key."""
    return any(group.fed_by for group in plan.groups)
