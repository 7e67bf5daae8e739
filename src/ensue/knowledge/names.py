"""The names of concepts as people and events write them.

A concept has several spellings: its IRI, plain or in angle brackets, a prefix and a local name
(`wine:Red`) for every prefix that fits, and the local name alone where no other concept has it.
All spellings are one look-up, made once an ontology. A name in a filter that is unknown or
ambiguous is refused here with what could have been meant; one in an event is just no concept.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

from rdflib.term import Node

from ensue.errors import OntologyError
from ensue.knowledge.codes import UNKNOWN
from ensue.knowledge.reasoning.vocabulary import VOCABULARIES

_LOCAL = re.compile(r"[^#/:]+\Z")
MOST_SHOWN = 3
_AMBIGUOUS = "it is ambiguous"


class Names:
    """`concepts` in the order of their codes; `prefixes` may have several namespaces each."""

    def __init__(self, concepts: Sequence[str], prefixes: Mapping[str, Sequence[str]]) -> None:
        self._concepts = tuple(str(each) for each in concepts)
        self._prefixes = {prefix: tuple(spaces) for prefix, spaces in prefixes.items()}
        self._by_local: dict[str, list[int]] = defaultdict(list)
        self._by_prefixed: dict[str, list[int]] = defaultdict(list)
        self._codes: dict[str, int] = {}
        for code, iri in enumerate(self._concepts):
            self._codes[iri] = self._codes[f"<{iri}>"] = code
            for spelling in _prefixed(iri, self._prefixes):
                self._by_prefixed[spelling].append(code)
            local = _LOCAL.search(iri)
            # The vocabularies' own names do not make those of an ontology ambiguous.
            if local and not iri.startswith(VOCABULARIES):
                self._by_local[local[0]].append(code)
        for spelled in (self._by_prefixed, self._by_local):
            for spelling, found in spelled.items():
                if len(found) == 1:
                    self._codes.setdefault(spelling, found[0])

    @property
    def spellings(self) -> Mapping[str, int]:
        """Every unambiguous spelling of every concept, and its code."""
        return self._codes

    def code(self, text: object) -> int:
        """The code of a name in an event; `UNKNOWN` if it is none, or ambiguous."""
        return self._codes.get(text, UNKNOWN) if isinstance(text, str) else UNKNOWN

    def spelled(self, codes: Iterable[int]) -> list[str]:
        """All spellings of some concepts."""
        wanted = set(codes)
        return [spelling for spelling, code in self._codes.items() if code in wanted]

    def short(self, code: int) -> str:
        return self.shown(self._concepts[code])

    def shown(self, node: Node | str) -> str:
        """An IRI as filters would write it: with a prefix, or by its local name."""
        text = str(node)
        spelled = [each for each in _prefixed(text, self._prefixes) if not each.startswith(":")]
        local = _local(text)
        if local in self._codes:
            spelled.append(local)
        return min(spelled, key=lambda each: (":" not in each, len(each), each), default=text)

    def find(self, text: str, what: str = "concept", among: Collection[int] | None = None) -> int:
        """The code of a name in a filter. Raises `OntologyError`, with what could be meant.

        With `among`, only these codes are offered for a name that is unknown.
        """
        code = self._codes.get(text)
        if code is not None:
            return code
        advice = self.advice(text, among)
        if advice.startswith(_AMBIGUOUS):
            raise OntologyError([f"`{text}` is ambiguous{advice.removeprefix(_AMBIGUOUS)}"])
        raise OntologyError([f"the ontology has no {what} `{text}`; {advice}"])

    def advice(self, text: str, among: Collection[int] | None = None) -> str:
        """What to write in place of a name that is unknown or ambiguous."""
        several = self._by_prefixed.get(text) or self._by_local.get(text)
        if several:
            candidates = " or ".join(f"`{self._distinct(each)}`" for each in sorted(several))
            return f"{_AMBIGUOUS}: write {candidates}"
        prefix, colon, _ = text.partition(":")
        is_iri = text.startswith(("<", "http:", "https:", "urn:"))
        if colon and not is_iri and prefix not in self._prefixes:
            known = ", ".join(f"`{each}:`" for each in sorted(self._prefixes) if each)
            return f"the prefix `{prefix}:` is not declared, known are {known}"
        codes = range(len(self._concepts)) if among is None else sorted(among)
        by_local = {_local(self._concepts[code]): code for code in codes}
        wanted = _local(text)
        # By their own parts: a prefix in common makes no names alike.
        close = get_close_matches(wanted, by_local, MOST_SHOWN, 0.7)
        close = close or [each for each in by_local if each.lower() == wanted.lower()]
        if close:
            shown = [f"`{self.short(by_local[each])}`" for each in close[:MOST_SHOWN]]
            return f"did you mean {' or '.join(shown)}?"
        return f"none of its {len(codes):,} is spelled like it"

    def _distinct(self, code: int) -> str:
        short = self.short(code)
        return short if short in self._codes else f"<{self._concepts[code]}>"


def _local(text: str) -> str:
    found = _LOCAL.search(text.rstrip(">"))
    return found[0] if found else text


def _prefixed(iri: str, prefixes: Mapping[str, Sequence[str]]) -> list[str]:
    return [
        f"{prefix}:{iri[len(space) :]}"
        for prefix, spaces in prefixes.items()
        for space in spaces
        if iri.startswith(space) and len(iri) > len(space)
    ]
