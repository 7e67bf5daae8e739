"""A mapping carried out step by step on the common event: easy to follow, and the judge."""

from __future__ import annotations

from ensue.events.event import Event
from ensue.federation.mapping.rules import Mapped, MappingError, MappingRule, computed, retyped
from ensue.federation.messages.event import CommonEvent, Fields


def interpreted(mapping: MappingRule) -> Mapped:
    """The mapping as a function, which looks at the rules for every event."""

    def mapped(event: Event) -> Event | None:
        if mapping.where is not None and not mapping.where.matches(event):
            return event
        common = CommonEvent.of(event)
        if common.form != "value":
            common = _with_parameters(mapping, common)
        if mapping.subject is not None:
            common = _with_subject(mapping, common)
        return common.event if mapping.plugin is None else mapping.plugin(common.event)

    return mapped


def _with_parameters(mapping: MappingRule, common: CommonEvent) -> CommonEvent:
    values = common.parameters.values()
    if mapping.split is not None:
        values |= mapping.split.split(common.subject) or {}
    values = {mapping.rename.get(name, name): value for name, value in values.items()}
    for name in mapping.remove:
        values.pop(name, None)
    for name, wanted in mapping.retype.items():
        if values.get(name) is not None:
            values[name] = retyped(name, values[name], wanted)
    form = common.form
    for name, expression in mapping.compute.items():
        so_far = CommonEvent(common.subject, Fields(values.items()), common.attributes, "members")
        values[name] = computed(name, expression, so_far.event)
    if values:
        form = "members"
    return CommonEvent(common.subject, Fields(values.items()), common.attributes, form)


def _with_subject(mapping: MappingRule, common: CommonEvent) -> CommonEvent:
    assert mapping.subject is not None
    values = common.parameters.values() if common.form == "members" else {}
    try:
        subject = mapping.subject.join(values)
    except KeyError as error:
        raise MappingError(
            f"the subject `{mapping.subject.text}` needs `{error.args[0]}`, which the event lacks"
        ) from None
    return CommonEvent(subject, common.parameters, common.attributes, common.form)
