"""The garbage collector is paused for a while, and then as it was before."""

from __future__ import annotations

import gc

import pytest

from ensue.lang.garbage_collection import collection_paused


def test_the_collector_is_off_inside_and_on_again_afterwards() -> None:
    assert gc.isenabled()

    with collection_paused():
        assert not gc.isenabled()

    assert gc.isenabled()


def test_an_error_inside_does_not_leave_the_collector_off() -> None:
    with pytest.raises(ValueError, match="inside"), collection_paused():
        raise ValueError("inside")

    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collection_paused():
            pass

        assert not gc.isenabled()
    finally:
        gc.enable()
