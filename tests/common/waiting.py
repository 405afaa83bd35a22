"""Waiting for what a test has brought about."""

import time

DEADLINE = 300  # seconds for what takes a moment; only a failure waits so long


def wait_for(what, condition, seconds=DEADLINE):
    """The first true value of condition()."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds} s for {what}")
        time.sleep(0.05)
    return value
