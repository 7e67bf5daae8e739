"""The event channel: connects suppliers, look-up, dispatching, timeouts and links.

`builder` assembles a channel from a look-up and a dispatching strategy; timeouts and links are
created when they are first used. An event enters by `push` or `publish`, is offered to this
channel's consumers that want it, and is forwarded to the linked channels that want it.

The module is long because it is the whole surface of a channel; the work is done in the modules
that it connects.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Self

from ensue.channel.closing import Closing, are_idle, disconnect_all, wait_until
from ensue.channel.consumers import Consumer, ConsumerAdmin
from ensue.channel.delivery.blocked import Blocked, blocked_offers, wait_each
from ensue.channel.delivery.mailbox import Call
from ensue.channel.delivery.receiver import ChannelContext, Failure, Receiver
from ensue.channel.dispatch.dispatcher import Dispatcher, can_await
from ensue.channel.figures.counts import ChannelCounts
from ensue.channel.figures.values import Figures
from ensue.channel.lookup.interests import interests
from ensue.channel.lookup.wants import EventWant, Wants, is_decided_by_one_event
from ensue.channel.parts import ChannelParts
from ensue.channel.policies import Quality
from ensue.channel.suppliers import SupplierAdmin
from ensue.channel.timing.clock import DurationLike, WallClock, microseconds_in
from ensue.errors import UsageError
from ensue.events.event import Event

if TYPE_CHECKING:
    from ensue.channel.asyncio_api import Subscription
    from ensue.channel.delivery.steps import DeliveryStep
    from ensue.channel.links.federation import Departure, Federation
    from ensue.channel.scheduling.measured import ChannelSchedule
    from ensue.channel.timing.timeouts import Timeouts

log = logging.getLogger("ensue.channel")


class Channel:
    """Created by `ensue.channel.build(...)`. Close it when done, or use it in a `with` block."""

    def __init__(self, parts: ChannelParts) -> None:
        self.name = parts.name
        self.clock = parts.clock
        self.lookup = parts.lookup
        self.types = parts.types
        self.quality = parts.quality
        self.real_time = parts.real_time
        self.consumers = ConsumerAdmin(self)
        self.suppliers = SupplierAdmin(self)
        self._parts = parts
        self._dispatcher = parts.dispatcher
        self._counts = ChannelCounts()
        self._published = self._counts.published.steps
        self._unwanted = self._counts.unwanted.steps
        self._context = ChannelContext(
            parts.clock,
            parts.dispatcher,
            self._report,
            parts.on_drop,
            self._remove_disconnected,
        )
        self._timeouts: Timeouts | None = None
        self._federation: Federation | None = None
        self._is_closing = False
        self._is_closed = False
        self._changing = threading.Lock()
        self._pulls = count(1)
        self._held_updates = 0
        self._holding = threading.Lock()
        if self.real_time is not None:
            self.real_time.begin()
        parts.dispatcher.start(self._context)

    def push(self, event: Event) -> None:
        """Publish an event. Waits for room where a consumer's overflow policy is `Block`."""
        if self._is_closing:
            self._check_open()
        next(self._published)
        try:
            receivers = self.lookup.ready[event.type][event.source]
        except KeyError:
            receivers = None
        if receivers is None:
            receivers = self.lookup.find(event)
        if self._federation is not None:
            # After the look-up: it says which of the rules that were found run elsewhere by now.
            departure = self._federation.publish(event)
            if departure.readers is not None:
                receivers = departure.readers.of(receivers)
            self._push_and_depart(event, receivers, departure)
        elif receivers:
            full = self._dispatcher.spread(event, receivers)
            if full:
                self.wait_for_room(blocked_offers(event, full))
        else:
            next(self._unwanted)

    def _push_and_depart(
        self, event: Event, receivers: Sequence[Receiver], departure: Departure
    ) -> None:
        """Serve local consumers, then transmit the event over links."""
        try:
            blocked = self.spread_to(event, receivers)
        except BaseException:
            departure.transmit()
            for each in departure.blocked:
                each.give_up()
            raise
        departure.transmit()
        if blocked or departure.blocked:
            self.wait_for_room([*blocked, *departure.blocked])

    async def publish(self, event: Event) -> None:
        """Publish an event from a coroutine; waiting for room does not block the loop."""
        if self._is_closing:
            self._check_open()
        next(self._published)
        receivers, departure = self.lookup.find(event), None
        if self._federation is not None:
            departure = self._federation.publish(event)
            if departure.readers is not None:
                receivers = departure.readers.of(receivers)
        blocked = self.spread_to(event, receivers)
        if departure is not None:
            departure.transmit()
            blocked = [*blocked, *departure.blocked]
        if blocked:
            from ensue.channel.delivery.async_waiting import wait_all

            await wait_all(blocked)

    def spread_to(self, event: Event, receivers: Sequence[Receiver]) -> Sequence[Blocked]:
        """Offer an event to consumers. Returns the offers that wait for room."""
        if receivers:
            full = self._dispatcher.spread(event, receivers)
            return blocked_offers(event, full) if full else ()
        next(self._unwanted)
        return ()

    def wait_for_room(self, blocked: Sequence[Blocked]) -> None:
        wait_each(blocked, self._dispatcher.may_wait())

    def _check_open(self) -> None:
        # While a channel drains, its own consumers may still push in their turns.
        if self._is_closed or not self._dispatcher.is_in_turn():
            raise UsageError(f"the channel `{self.name}` is closed and takes no more events")

    def subscribe(
        self, wants: Wants | str | None = None, *, name: str | None = None, **quality: Any
    ) -> Subscription:
        """Events to iterate over: `for event in ...` waits, `async for event in ...` awaits."""
        from ensue.channel.asyncio_api import Subscription

        chosen = name or f"subscription-{next(self._pulls)}"
        return Subscription(self.consumers.connect(chosen, None, wants, **quality))

    def new_receiver(
        self, name: str, number: int, call: Call | None, quality: Quality, step: DeliveryStep | None
    ) -> Receiver:
        if self._is_closed:
            raise UsageError(f"the channel `{self.name}` is closed: no consumer can connect to it")
        receiver = Receiver(name, number, call, quality, self._context, step)
        if receiver.is_coroutine and not can_await(self._dispatcher):
            raise UsageError(
                f"the consumer `{name}` is a coroutine, which the strategy `{self.strategy}` cannot"
                " await: dispatch by `asyncio`, or iterate over `channel.subscribe(...)`"
            )
        return receiver

    def step_for(self, wants: Wants, owner: str) -> DeliveryStep | None:
        """The step that wants need; None if the look-up alone can decide."""
        self.check_wants(wants)
        if is_decided_by_one_event(wants):
            return None
        from ensue.channel.delivery.conditions import step_for

        # A clock that is set by hand does not tell which times lie in the future.
        now = self.clock.now if isinstance(self.clock, WallClock) else None
        return step_for(wants, self.types, owner, now)

    def check_wants(self, wants: Wants) -> None:
        """Raises `UsageError` for wants that need a part which this channel does not have."""
        if not self._parts.has_filtering and not _wants_all(wants):
            raise UsageError(
                f"the channel `{self.name}` was built without filtering, so a consumer gets every"
                " event: leave out what it wants, or build the channel with filtering"
            )
        if is_decided_by_one_event(wants) or self._parts.has_correlation:
            return
        from ensue.channel.delivery.conditions import has_correlation

        if has_correlation(wants):
            raise UsageError(
                f"the channel `{self.name}` was built without correlation: build it with"
                " `.correlation()` or as `full`"
            )

    def guard_for(self, wants: Wants) -> Callable[[Event], bool] | None:
        """A test of the present wants, for events that the look-up found by earlier wants."""
        if not self._parts.has_filtering:
            return None
        from ensue.channel.delivery.conditions import matches

        each = tuple(interests(wants))
        return lambda event: any(matches(one, event, self.types) for one in each)

    def timeouts(self) -> Timeouts:
        """The timers of this channel, created with the first timeout."""
        if not self._parts.has_timeouts:
            raise UsageError(
                f"the channel `{self.name}` was built without timeouts: build it with `.timeouts()`"
            )
        with self._changing:
            if self._timeouts is None:
                from ensue.channel.timing.timeouts import Timeouts

                self._timeouts = Timeouts(self.clock)
            return self._timeouts

    def with_subtypes(self, types: Iterable[str]) -> frozenset[str]:
        return frozenset(each for one in types for each in (one, *self.types.subtypes(one)))

    def is_wanted(self, types: Iterable[str], source: str | None) -> bool:
        """Whether a consumer, here or in a linked channel, might want one of these types."""
        named = tuple(types)
        if not named:
            return True
        asked: list[Any] = [self.lookup]
        if self._federation is not None:
            asked.append(self._federation.remote)
        return any(each.is_wanted(type_, source) for each in asked for type_ in named)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """A block that changes consumers; suppliers and linked channels are told at its end."""
        with self._holding:
            self._held_updates += 1
        try:
            yield
        finally:
            with self._holding:
                self._held_updates -= 1
            self.wants_changed()

    def wants_changed(self) -> None:
        """Tell linked channels and suppliers that wants have changed."""
        if self._held_updates:
            return
        if self._federation is not None:
            self._federation.wants_changed()
        self.demand_changed()

    def demand_changed(self) -> None:
        """Tell suppliers whether their events are wanted now."""
        self.suppliers.update_demand()

    def prepare(self, type_: str, source: str) -> None:
        """Compute the look-up for a kind of event before the first one comes."""
        self.lookup.prepare(type_, source)

    @property
    def runs_rules(self) -> bool:
        """Whether it can run any rule, also for linked channels."""
        return self._parts.has_correlation and self._parts.has_timeouts

    def has_supplier_of(self, wanted: Sequence[EventWant]) -> bool:
        """Whether a supplier here may publish an event that is wanted."""
        types = self.with_subtypes(each.type for each in wanted if each.type is not None)
        return any(each.may_publish(types) for each in self.suppliers)

    @property
    def federation(self) -> Federation:
        """The links of this channel. Created on first use; without it, links cost nothing."""
        with self._changing:
            if self._federation is None:
                from ensue.channel.links.federation import Federation

                self._federation = Federation(self)
        return self._federation

    @contextmanager
    def in_real_time(self, priority: int = 1) -> Iterator[bool]:
        """Give the calling thread a real-time priority. Yields whether the system allows it."""
        if self.real_time is None:
            raise UsageError(
                f"the channel `{self.name}` is not in real time: build it with"
                " `.dispatching(..., real_time=True)`"
            )
        with self.real_time.joined(priority) as is_in:
            yield is_in

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def strategy(self) -> str:
        return self._parts.strategy

    def dispatch_by(self, strategy: str | Dispatcher | type[Dispatcher], threads: int = 4) -> None:
        """Replace the dispatching strategy, or resize its pool, under load."""
        with self._changing:
            if self._is_closed:
                raise UsageError(f"the channel `{self.name}` is closed: it dispatches nothing")
            current: Any = self._dispatcher
            if strategy == self.strategy == "pool":
                current.resize(threads)
                return
            successor = self._parts.new_dispatcher(strategy, threads)
            name = strategy if isinstance(strategy, str) else type(successor).__name__
            if not can_await(successor):
                for consumer in self.consumers:
                    if consumer.receiver.is_coroutine:
                        raise UsageError(
                            f"the consumer `{consumer.name}` is a coroutine, which the strategy"
                            f" `{name}` cannot await: disconnect it first"
                        )
            successor.start(self._context)
            self._parts.strategy = name
            self._dispatcher = self._context.dispatcher = successor
        current.stop(successor)

    def reconfigure(
        self, *, filtering: bool | None = None, correlation: bool | None = None
    ) -> None:
        """Add parts of the channel or take them away, while events flow.

        An event that is pushed meanwhile is looked up by the old part or the new one. A part that a
        consumer's wants need stays, and the call is refused with the names of such consumers.
        """
        parts = self._parts
        with self._changing:
            if self._is_closed:
                raise UsageError(f"the channel `{self.name}` is closed: it has no parts any more")
            has_correlation = parts.has_correlation if correlation is None else correlation
            has_filtering = parts.has_filtering if filtering is None else filtering
            if correlation and filtering is None:
                has_filtering = True
            if has_correlation and not has_filtering:
                raise UsageError(
                    "correlation needs filtering: leave both, or take both away by"
                    " `reconfigure(filtering=False, correlation=False)`"
                )
            with self.consumers.standing_still() as consumers:
                self._refuse_what_is_needed(consumers, has_filtering, has_correlation)
                if has_filtering != parts.has_filtering:
                    lookup = parts.new_lookup(has_filtering)
                    for each in consumers:
                        if each.state != "disconnected":
                            lookup.put(each.receiver, each.looked_up())
                    self.lookup = lookup
                parts.has_filtering, parts.has_correlation = has_filtering, has_correlation
        self.wants_changed()

    def _refuse_what_is_needed(
        self, consumers: Sequence[Consumer], has_filtering: bool, has_correlation: bool
    ) -> None:
        from ensue.channel.delivery.conditions import has_correlation as correlates

        if not has_correlation:
            _refuse_for("correlation", [each for each in consumers if correlates(each.wants)])
        if not has_filtering:
            _refuse_for("filtering", [each for each in consumers if not _wants_all(each.wants)])

    @property
    def schedule(self) -> ChannelSchedule:
        """The schedule that the channel was built with, and what its operations take."""
        if self._parts.schedule is None:
            raise UsageError(
                f"the channel `{self.name}` was built without a schedule: build it with"
                ' `.schedule("schedule.toml")`'
            )
        return self._parts.schedule

    def figures(self) -> Figures:
        """The counts of this channel and its consumers."""
        unsent = self._federation.dropped() if self._federation is not None else {}
        receivers = [each.receiver for each in self.consumers]
        return self._counts.read(receivers, self.suppliers.unwanted, unsent)

    def reset_laxity(self) -> None:
        """Restart the measurement of laxity."""
        self._counts.reset_laxity([each.receiver for each in self.consumers])

    def keep_counts_of(self, receiver: Receiver) -> None:
        """Keep the counts of a consumer that leaves."""
        self._counts.keep(receiver)

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

    def _remove_disconnected(self, receiver: Receiver) -> None:
        """Remove a consumer that its overflow policy has disconnected."""
        consumer = self.consumers.of(receiver)
        if consumer is not None:
            consumer.stop_timers()
            self.lookup.remove(receiver)
            self.wants_changed()

    def settle(self, within: DurationLike = "10 s") -> bool:
        """Wait until every queue is empty and every call has returned. False if time runs out."""
        return wait_until(self.is_settled, within)

    def is_settled(self) -> bool:
        """Whether no event waits and no call runs. Events that are pulled may wait."""
        return are_idle(self.consumers)

    def close(self, *, drain: bool = True, within: DurationLike = "5 s") -> Closing:
        """Close the channel, in no more than the given time; by default empty the queues first."""
        if self._is_closed:
            return Closing(True, 0)
        deadline = time.monotonic() + microseconds_in(within) / 1_000_000
        self._is_closing = True
        drained = self.settle(within) if drain else self.is_settled()
        if self._federation is not None:
            drained = self._federation.close(deadline) and drained
        return self._end(drain, drained)

    async def aclose(self, *, drain: bool = True, within: DurationLike = "5 s") -> Closing:
        """Close the channel from a coroutine."""
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
                # Another thread has closed the channel meanwhile.
                return Closing(drained, 0)
            self._is_closed = True
        if self._timeouts is not None:
            self._timeouts.close()
        self._dispatcher.stop(None)
        if self.real_time is not None:
            self.real_time.end()
        discarded = disconnect_all(self.consumers, drains)
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


def _wants_all(wants: Wants) -> bool:
    """Whether wants are every event, which needs no filtering."""
    return is_decided_by_one_event(wants) and tuple(interests(wants)) == (EventWant(),)


def _refuse_for(part: str, consumers: Sequence[Consumer]) -> None:
    if consumers:
        names = ", ".join(f"`{each.name}`" for each in consumers[:10])
        raise UsageError(
            f"{part} cannot be taken away: what {names} want needs it; change their wants or"
            " disconnect them first"
        )
