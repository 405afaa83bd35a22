"""What exists in the fake's cloud, its clock, and what happens in it without a request: operations that end, deadlines,
preemptions. All members are called with `lock` held."""

import re
import threading
import time
import uuid
from datetime import datetime, timezone

from . import catalog
from .refusal import Refusal


def stamp(seconds):
    """RFC 3339 of seconds since 1970, as Google writes it."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


def seconds_of(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def duration_of(text):
    return float(text.rstrip("s"))


class Thing:
    """A resource. `kind` is the collection of its method ids ("tpu.nodes", "compute.disks"), `name` its path from
    "projects/" on, `body` what a GET shows; `given` were there before the first request."""

    def __init__(self, kind, name, body, created, given=False):
        self.kind, self.name, self.body, self.created, self.given = kind, name, body, created, given
        self.spent = 0.0
        self.settled = created
        self.private = {}


class Step:
    """Something that is under way: it is done at `due`, when it was looked at more than `polls` times (or nobody has
    looked for long)."""

    def __init__(self, target, due, polls, patience, action):
        self.target, self.due, self.polls, self.patience, self.action = target, due, polls, patience, action
        self.operation = None  # whose end it is
        self.over = False

    def time(self):
        return self.due + self.polls * self.patience


class World:
    def __init__(self, config):
        self.lock = threading.RLock()
        self.config = config
        clock = config.get("clock", {})
        self.speed = clock.get("speed", 1.0)
        self.base = clock.get("start", time.time())
        self.real = time.monotonic()
        self.at = None  # the time of the step that is being done
        self.things = {}
        self.operations = {}
        self.steps = []
        self.requests = {}  # (method, requestId) -> operation
        self.history = []  # what happened without a request, and what was deleted
        self.spent_before = 0.0  # by what is gone
        self.rates = {}  # kind -> thing -> $ an hour
        self.idle_work = []  # called whenever time passes
        self.given_names = []
        self.metadata = {}  # of projects: commonInstanceMetadata
        self.uploads = {}  # resumable uploads under way
        self.counter = 0
        self.zones = config.get("zones") or {zone: {} for zone in catalog.ZONES}
        self.projects = config.get("projects", ["p"])

    # Time.
    def now(self):
        return self.at if self.at is not None else self.base + (time.monotonic() - self.real) * self.speed

    def advance(self, seconds):
        self.base += seconds
        self.tick()

    def set_speed(self, speed):
        now = self.now()
        self.base, self.real, self.speed = now, time.monotonic(), speed

    def tick(self):
        """Does what is due, in the order of time."""
        now = self.now()
        while due := [step for step in self.steps if step.time() <= now]:
            step = min(due, key=Step.time)
            self._finish(step, step.time())
        self._idle(now)
        self.settle()

    def _idle(self, when):
        """What waits for room may have it since `when`."""
        before, self.at = self.at, when
        try:
            for work in self.idle_work:
                work(self)
        finally:
            self.at = before

    def _finish(self, step, when):
        if step.over:
            return
        step.over = True
        self.steps.remove(step)
        before, self.at = self.at, when
        self.settle()
        try:
            step.action()
        finally:
            self.at = before
        self._idle(when)

    def later(self, target, seconds, action, polls=0):
        step = Step(target, self.now() + seconds, polls, self.config.get("patience", 10.0), action)
        self.steps.append(step)
        return step

    def look(self, name):
        """Somebody looks at the thing or the operation: the first `polls` looks see what was."""
        for step in [step for step in self.steps if name in (step.target, step.operation and step.operation.name)]:
            if step.polls > 0:
                step.polls -= 1
            elif step.due <= self.now():
                self._finish(step, self.now())

    def drop_steps(self, target, deadlines=True):
        """The thing is gone, or is going (then its deadlines stay): operations that were under way end with ABORTED."""
        for step in [step for step in self.steps if step.target == target]:
            if step.operation is None and not deadlines:
                continue
            step.over = True
            self.steps.remove(step)
            if step.operation is not None and not step.operation.done:
                step.operation.end(self.now(), {"code": 10, "message": f"{target} was deleted meanwhile"})

    # Things.
    def add(self, kind, name, body, given=False):
        thing = Thing(kind, name, body, self.now(), given)
        self.things[name] = thing
        return thing

    def remove(self, name, why):
        self.settle()
        thing = self.things.pop(name, None)
        if thing is not None:
            self.drop_steps(name)
            self.spent_before += thing.spent
            self.note(why, name)
        return thing

    def note(self, what, name):
        self.history.append({"clock": stamp(self.now()), "what": what, "name": name})

    def of_kind(self, kind, under=""):
        return [thing for name, thing in sorted(self.things.items()) if thing.kind == kind and name.startswith(under)]

    def rate(self, thing):
        """$ an hour now."""
        rate = self.rates.get(thing.kind)
        return rate(thing) if rate else 0.0

    def settle(self):
        now = self.now()
        for thing in self.things.values():
            if now > thing.settled:
                thing.spent += self.rate(thing) * (now - thing.settled) / 3600
                thing.settled = now

    def unique(self):
        self.counter += 1
        return self.counter

    def number(self):
        """An id as Google's: 19 digits."""
        return str(1000000000000000000 + self.unique())

    # Places.
    def check_project(self, project):
        if project not in self.projects:
            raise Refusal(403, f"Permission denied on resource project {project}.", details=[
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "CONSUMER_INVALID",
                 "domain": "googleapis.com", "metadata": {"consumer": f"projects/{project}"}}])

    def reachable(self, zone):
        return zone not in self.config.get("unreachable", [])

    def regions(self):
        return sorted({catalog.region_of(zone) for zone in self.zones})

    def pick(self, key, method_id, name):
        """What a configuration's list says about one call: the first entry whose expressions fit. It lets "skip" calls
        through and is used "times" times (1); with "each", for the first call of every method and name."""
        for entry in self.config.get(key, []):
            if re.search(entry.get("method", ""), method_id) and re.search(entry.get("name", ""), name) and self._due(
                    entry, (method_id, name)):
                return entry
        return None

    @staticmethod
    def _due(entry, call):
        if entry.get("each"):
            met = entry.setdefault("met", [])
            if call in met:
                return False
            met.append(call)
            return True
        entry["seen"] = entry.get("seen", 0) + 1
        return 0 < entry["seen"] - entry.get("skip", 0) <= entry.get("times", 1)

    def timing(self, method_id):
        """(polls, seconds) of a method's operation."""
        table = self.config.get("timing", {})
        for expression, timing in table.items():
            if expression != "default" and re.search(expression, method_id):
                return timing.get("polls", 0), timing.get("seconds", 0)
        timing = table.get("default", {"polls": 1})
        return timing.get("polls", 0), timing.get("seconds", 0)


def valid_request_id(text):
    try:
        return uuid.UUID(text).int != 0
    except ValueError:
        return False
