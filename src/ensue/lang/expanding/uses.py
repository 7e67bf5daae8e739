"""Uses: rules with the text of another rule, other sources at its ports, and other values.

In comes a `use`, `use X as Y (a from "gps-1") with { limit = 10 }`; out goes the rule `Y`: the text
of `X`, its port `a` wired anew, and what is to be put in for parameters. Any rule can be used, a
template, another rule, or one that is a use itself; its settings then come first. Names that do not
exist, and settings that do not fit, are reported at the use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ensue.lang.checking.scope import LibraryScope
from ensue.lang.expanding.parameters import Values, type_name, value_of
from ensue.lang.syntax import (
    Correlation,
    EventPort,
    Parameter,
    ParameterValue,
    Port,
    PortSource,
    TimerPort,
    Use,
)


@dataclass(frozen=True)
class UsedRule:
    """A rule before values are put in. `rule` is the text, `settings` what the uses set."""

    rule: Correlation
    settings: Values


@dataclass
class Uses:
    """Makes rules of uses; `rules` are the correlations of the library, by name."""

    rules: Mapping[str, Correlation]
    uses: Mapping[str, Use]
    parameters: Mapping[str, Parameter]
    scope: LibraryScope

    def rule_of(self, use: Use) -> UsedRule | None:
        """The rule of a use; None where there is none, which is reported."""
        chain = self._chain(use)
        if chain is None:
            return None
        rule = self.rules[chain[-1].rule]
        settings: dict[str, ParameterValue] = {}
        # The innermost use first: the ones around it go before it.
        for each in reversed(chain):
            wired = self._wired(rule, each, report=each is use)
            rule = replace(wired, name=use.name, role=use.role, span=use.span)
            settings |= self._settings(each, report=each is use)
        return UsedRule(rule, settings)

    def _chain(self, use: Use) -> list[Use] | None:
        """The use, the use that it is of, and so on; the last one is of a correlation."""
        chain = [use]
        while (name := chain[-1].rule) not in self.rules:
            following = self.uses.get(name)
            if following is None:
                if len(chain) == 1:
                    self.scope.error(
                        "unknown-rule",
                        f"there is no rule `{name}` that could be used",
                        use.rule_span,
                        self.scope.hint(name, {*self.rules, *self.uses}),
                    )
                return None
            if following in chain:
                path = " -> ".join([each.name for each in chain] + [following.name])
                self.scope.error(
                    "circular-use",
                    f"uses are of each other in a circle: {path}",
                    use.span,
                    "let one of them use a correlation or a template",
                )
                return None
            chain.append(following)
        return chain

    def _wired(self, rule: Correlation, use: Use, *, report: bool) -> Correlation:
        ports = {port.name: port for port in rule.ports}
        sources: dict[str, tuple[PortSource, ...]] = {}
        for each in use.wirings:
            port = ports.get(each.port)
            if isinstance(port, EventPort) and each.port not in sources:
                sources[each.port] = each.sources
            elif report and each.port in sources:
                self.scope.error(
                    "duplicate-port",
                    f"port `{each.port}` is wired twice in this use",
                    each.span,
                    "name all its sources after one `from`",
                )
            elif report and isinstance(port, TimerPort):
                self.scope.error(
                    "timer-port",
                    f"`{each.port}` is a timer of `{use.rule}`, and reads from nowhere",
                    each.span,
                    "leave it out",
                )
            elif report:
                self.scope.error(
                    "unknown-port",
                    f"`{use.rule}` has no port `{each.port}`",
                    each.span,
                    self.scope.hint(each.port, ports),
                )
        wired: tuple[Port, ...] = tuple(
            replace(port, sources=sources[port.name])
            if isinstance(port, EventPort) and port.name in sources
            else port
            for port in rule.ports
        )
        return replace(rule, ports=wired)

    def _settings(self, use: Use, *, report: bool) -> dict[str, ParameterValue]:
        found: dict[str, ParameterValue] = {}
        for each in use.settings:
            parameter = self.parameters.get(each.name)
            if parameter is None:
                if report:
                    self.scope.error(
                        "unknown-parameter",
                        f"there is no parameter `{each.name}`",
                        each.span,
                        self.scope.hint(each.name, self.parameters),
                    )
                continue
            if each.name in found and report:
                self.scope.error(
                    "duplicate-parameter",
                    f"parameter `{each.name}` is set twice in this use",
                    each.span,
                    "leave one of them out",
                )
            try:
                found[each.name] = value_of(parameter, each.value)
            except ValueError as error:
                if report:
                    self.scope.error(
                        "parameter-does-not-fit",
                        f"this value does not fit parameter `{each.name}`, a"
                        f" `{type_name(parameter)}`: {error}",
                        each.value_span,
                    )
        return found
