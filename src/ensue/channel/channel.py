"""The event channel: suppliers push, those who want it are called, correlations sit in between.

A channel is put together by `builder` from a look-up (`index`, or `everyone`), a dispatching
strategy (`reactive`, `pool` or `asynchronous`), and, only once they are asked for, timeouts and
links to other channels. This module is what holds them together: an event comes in by `push` or
`publish`, is forwarded to other channels that want it, and is spread to those here who do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from ensue.channel.closing import Closing, are_idle, let_go, wait_until
from ensue.channel.consumers import ConsumerAdmin, needs_step
from ensue.channel.delivery.mailbox import Call
from ensue.channel.delivery.receiver import Failure, Receiver, Surroundings, offer_each
from ensue.channel.figures.accounts import Accounts
from ensue.channel.figures.values import Figures
from ensue.channel.lookup.interests import interests
from ensue.channel.lookup.wants import Want, Wants
from ensue.channel.parts import Parts
from ensue.channel.policies import Quality
from ensue.channel.suppliers import SupplierAdmin
from ensue.channel.timing.clock import DurationLike, microseconds_in
from ensue.errors import UsageError
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.asyncio_api import Subscription
    from ensue.channel.delivery.steps import Step
    from ensue.channel.links.federation import Federation
    from ensue.channel.timing.timeouts import Timeouts

log = logging.getLogger("ensue.channel")


class Channel:
    """Made by `ensue.channel.build(...)`. Close it when done, or use it in a `with` block."""

    def __init__(self, parts: Parts) -> None:
        self.name = parts.name
        self.clock = parts.clock
        self.look_up = parts.look_up
        self.types = parts.types
        self.quality = parts.quality
        self.urgency = parts.urgency
        self.consumers = ConsumerAdmin(self)
        self.suppliers = SupplierAdmin(self)
        self._parts = parts
        self._dispatcher = parts.dispatcher
        self._accounts = Accounts()
        self._published = self._accounts.published.steps
        self._unwanted = self._accounts.unwanted.steps
        self._around = Surroundings(
            parts.clock,
            parts.dispatcher,
            self._report,
            parts.on_drop,
            self._left,
        )
        self._timeouts: Timeouts | None = None
        self._federation: Federation | None = None
        self._is_closing = False
        self._is_closed = False
        self._changing = threading.Lock()
        self._pulls = 0
        self._held_back = 0
        if self.urgency is not None:
            self.urgency.begin()
        parts.dispatcher.start(self._around)

    # --- publishing ----------------------------------------------------------------------------

    def push(self, event: Event) -> None:
        """Publish an event; waits where a consumer's overflow policy says so."""
        if self._is_closing:
            self._refuse_if_closed()
        next(self._published)
        ways = self._federation.publish(event) if self._federation is not None else ()
        try:
            receivers = self.look_up.ready[event.type][event.source]
        except KeyError:
            receivers = None
        if receivers is None:
            receivers = self.look_up.find(event)
        if receivers:
            full = self._dispatcher.spread(event, receivers)
            for link, _ in ways:
                link.set_off()
            if full:
                self.wait_for_room(event, full)
            return
        next(self._unwanted)
        for link, _ in ways:
            link.set_off()

    async def publish(self, event: Event) -> None:
        """Publish an event from a coroutine; where `push` would wait, the loop goes on."""
        if self._is_closing:
            self._refuse_if_closed()
        next(self._published)
        ways = self._federation.publish(event) if self._federation is not None else ()
        full = self.spread_here(event)
        for link, _ in ways:
            link.set_off()
        if full:
            from ensue.channel.delivery.async_waiting import offer_all

            await offer_all(event, full)

    def spread_here(self, event: Event) -> list[Receiver]:
        """Offer an event to this channel's consumers. Returns those whose supplier has to wait."""
        receivers = self.look_up.find(event)
        if not receivers:
            next(self._unwanted)
            return []
        return self._dispatcher.spread(event, receivers)

    def wait_for_room(self, event: Event, full: Sequence[Receiver]) -> None:
        offer_each(event, full, self._dispatcher.may_wait())

    def _refuse_if_closed(self) -> None:
        # While it drains, a channel still takes what its own consumers push in their turns.
        if self._is_closed or not self._dispatcher.is_in_turn():
            raise UsageError(f"the channel `{self.name}` is closed and takes no more events")

    # --- subscribing ---------------------------------------------------------------------------

    def subscribe(
        self, wants: Wants | str | None = None, *, name: str | None = None, **promises: Any
    ) -> Subscription:
        """Events to iterate over: `for event in ...` waits, `async for event in ...` awaits."""
        from ensue.channel.asyncio_api import Subscription

        self._pulls += 1
        return Subscription(
            self.consumers.connect(name or f"subscription-{self._pulls}", None, wants, **promises)
        )

    def new_receiver(
        self, name: str, number: int, call: Call | None, quality: Quality, step: Step | None
    ) -> Receiver:
        receiver = Receiver(name, number, call, quality, self._around, step)
        if receiver.is_coroutine and self.strategy != "asyncio":
            raise UsageError(
                f"the consumer `{name}` is a coroutine, which the strategy `{self.strategy}` cannot"
                " await: dispatch by `asyncio`, or iterate over `channel.subscribe(...)`"
            )
        return receiver

    def step_for(self, wants: Wants, owner: str) -> Step | None:
        """What has to stand between the look-up and a consumer."""
        if not needs_step(wants):
            return None
        if not self._parts.has_filtering:
            raise UsageError(
                f"the channel `{self.name}` was built without filtering, so a consumer gets every"
                " event: leave out what it wants, or build the channel with filtering"
            )
        from ensue.channel.delivery.conditions import has_correlation, step_for

        if has_correlation(wants) and not self._parts.has_correlation:
            raise UsageError(
                f"the channel `{self.name}` was built without correlation: build it with"
                " `.correlation()` or as `full`"
            )
        return step_for(wants, self.types, owner)

    def guard_for(self, wants: Wants) -> Callable[[Event], bool] | None:
        """Whether wants that need no step still want an event that was found by earlier ones."""
        if not self._parts.has_filtering:
            return None
        from ensue.channel.delivery.conditions import matches

        each = tuple(interests(wants))
        return lambda event: any(matches(one, event, self.types) for one in each)

    def timeouts(self) -> Timeouts:
        """The timers of this channel, from the first that is asked for on."""
        if not self._parts.has_timeouts:
            raise UsageError(
                f"the channel `{self.name}` was built without timeouts: build it with `.timeouts()`"
            )
        with self._changing:
            if self._timeouts is None:
                from ensue.channel.timing.timeouts import Timeouts

                self._timeouts = Timeouts(self.clock)
            return self._timeouts

    # --- wants and demand ----------------------------------------------------------------------

    def with_subtypes(self, types: Iterable[str]) -> frozenset[str]:
        return frozenset(each for one in types for each in (one, *self.types.subtypes(one)))

    def is_wanted(self, types: Iterable[str], source: str | None) -> bool:
        """Whether anybody, here or in a linked channel, might want one of these types."""
        named = tuple(types)
        if not named:
            return True
        asked: list[Any] = [self.look_up]
        if self._federation is not None:
            asked.append(self._federation.remote)
        return any(each.is_wanted(type_, source) for each in asked for type_ in named)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Connect or change many consumers, and tell suppliers and linked channels once."""
        self._held_back += 1
        try:
            yield
        finally:
            self._held_back -= 1
            self.wants_changed()

    def wants_changed(self) -> None:
        """Tell suppliers and linked channels what is wanted now."""
        if self._held_back:
            return
        if self._federation is not None:
            self._federation.wants_changed()
        self.demand_changed()

    def demand_changed(self) -> None:
        """Tell suppliers whether their events are wanted now."""
        self.suppliers.look_again()

    def prepare(self, type_: str, source: str) -> None:
        """Have the look-up ready for a kind of event before the first one comes."""
        self.look_up.prepare(type_, source)

    def local_wants(self) -> Iterable[Want]:
        """All that this channel's consumers might want."""
        for consumer in self.consumers:
            if consumer.state != "disconnected":
                yield from interests(consumer.wants)

    # --- several channels ----------------------------------------------------------------------

    @property
    def federation(self) -> Federation:
        """This channel's place among linked channels; from the first link on it costs something."""
        with self._changing:
            if self._federation is None:
                from ensue.channel.links.federation import Federation

                self._federation = Federation(self)
        return self._federation

    # --- dispatching ---------------------------------------------------------------------------

    @contextmanager
    def in_real_time(self, priority: int = 1) -> Iterator[bool]:
        """Let the thread of a supplier be as urgent as a consumer; whether the system lets it."""
        if self.urgency is None:
            raise UsageError(
                f"the channel `{self.name}` is not in real time: build it with"
                " `.dispatching(..., real_time=True)`"
            )
        with self.urgency.joined(priority) as is_in:
            yield is_in

    @property
    def strategy(self) -> str:
        return self._parts.strategy

    def dispatch_by(self, strategy: str, threads: int = 4) -> None:
        """Swap the dispatching strategy, or resize its pool, while events flow."""
        with self._changing:
            current: Any = self._dispatcher
            if strategy == self.strategy == "pool":
                current.resize(threads)
                return
            if strategy != "asyncio":
                for consumer in self.consumers:
                    if consumer.receiver.is_coroutine:
                        raise UsageError(
                            f"the consumer `{consumer.name}` is a coroutine, which the strategy"
                            f" `{strategy}` cannot await: disconnect it first"
                        )
            successor = self._parts.new_dispatcher(strategy, threads)
            successor.start(self._around)
            self._parts.strategy = strategy
            self._dispatcher = self._around.turns = successor
        current.stop(successor)

    # --- figures, failures, end ----------------------------------------------------------------

    def figures(self) -> Figures:
        """What happened so far."""
        unsent = self._federation.dropped() if self._federation is not None else {}
        unmade = sum(each.unwanted for each in self.suppliers)
        return self._accounts.read([each.receiver for each in self.consumers], unmade, unsent)

    def reset_laxity(self) -> None:
        """Measure laxity afresh from here."""
        self._accounts.reset_laxity([each.receiver for each in self.consumers])

    def remember(self, receiver: Receiver) -> None:
        """Keep the counts of a consumer that has left."""
        self._accounts.remember(receiver)

    def _report(self, failure: Failure) -> None:
        end = "; it is suspended now" if failure.suspended else ""
        log.error(
            "the consumer `%s` failed on the event `%s`: %r%s",
            failure.consumer,
            failure.event.id,
            failure.error,
            end,
        )
        if self._parts.on_failure is not None:
            self._parts.on_failure(failure)

    def _left(self, receiver: Receiver) -> None:
        """A receiver was disconnected for not keeping up."""
        consumer = self.consumers.of(receiver)
        if consumer is not None:
            consumer.stop_timers()
            self.look_up.remove(receiver)
            self.wants_changed()

    def settle(self, within: DurationLike = "10 s") -> bool:
        """Wait until every queue is empty and every call has returned. False if time ran out."""
        return wait_until(self.is_settled, within)

    def is_settled(self) -> bool:
        """Whether nothing waits or runs. Events that are pulled wait for whoever pulls."""
        return are_idle(self.consumers)

    def close(self, *, drain: bool = True, within: DurationLike = "5 s") -> Closing:
        """End the channel: empty the queues first, or not, and in no more than the time given."""
        if self._is_closed:
            return Closing(True, 0)
        deadline = time.monotonic() + microseconds_in(within) / 1_000_000
        self._is_closing = True
        drained = self.settle(within) if drain else self.is_settled()
        if self._federation is not None:
            drained = self._federation.close(deadline) and drained
        return self._end(drain, drained)

    async def aclose(self, *, drain: bool = True, within: DurationLike = "5 s") -> Closing:
        """The same from a coroutine."""
        import asyncio

        from ensue.channel.asyncio_api import settled

        if self._is_closed:
            return Closing(True, 0)
        deadline = time.monotonic() + microseconds_in(within) / 1_000_000
        self._is_closing = True
        drained = await settled(self.is_settled, within) if drain else self.is_settled()
        if self._federation is not None:
            closed = await asyncio.to_thread(self._federation.close, deadline)
            drained = closed and drained
        return self._end(drain, drained)

    def _end(self, drains: bool, drained: bool) -> Closing:
        with self._changing:
            if self._is_closed:
                # Another thread has closed it meanwhile.
                return Closing(drained, 0)
            self._is_closed = True
        if self._timeouts is not None:
            self._timeouts.close()
        self._dispatcher.stop(None)
        if self.urgency is not None:
            self.urgency.end()
        discarded = let_go(self.consumers, drains)
        return Closing(drained and discarded == 0, discarded)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(drain=kind is None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.aclose(drain=kind is None)

    def __repr__(self) -> str:
        return (
            f"Channel({self.name}: {self.strategy}, {len(self.consumers)} consumers,"
            f" {len(self.suppliers)} suppliers)"
        )
