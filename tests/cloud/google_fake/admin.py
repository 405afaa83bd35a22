"""The endpoints under /_fake/, for tests.

GET  state        everything that exists with its cost; ?all=1 also with bodies
GET  empty        {"empty", "left": [names]}: what exists beyond what was given
GET  held         {"held"}: requests that wait because of a fault of kind "hold"
GET  log          the entries of the log, ?after=n
POST preempt      {"name": end of a node's name, "state": a node's state or "vanish"}
POST maintenance  {"name", "starts", "ends", "status", "type", "health"}
POST add          an entry as of "resources"
POST edit         {"name", "body": {…}} changes what a resource shows; {"name", "remove": true} takes it away
POST set          {key: value} of the configuration: quotas, zones, unreachable, denied_permissions, services, …
POST clock        {"advance": seconds} or {"speed": factor}
POST faults       [entries], see faults.py; {"clear": true}
POST reset        a whole new configuration
POST stop         ends the server"""

import json
import threading
import traceback

from . import compute_instances, services, tpu_limits, tpu_nodes
from .world import stamp


def things_like(world, name):
    """The things whose name is `name`, or ends with it after a slash."""
    found = [thing for full, thing in world.things.items() if full == name or full.endswith("/" + name)]
    if not found:
        raise KeyError(f"nothing is called {name}: there are {sorted(world.things)}")
    return found


def shown(world, thing, bodies):
    state = thing.body.get("state", thing.body.get("status", ""))
    entry = {"kind": thing.kind, "name": thing.name, "given": thing.given, "created": stamp(thing.created),
             "state": state.get("state", "") if isinstance(state, dict) else state,
             "dollars_per_hour": round(world.rate(thing), 6), "dollars": round(thing.spent, 6)}
    if bodies:
        entry["body"] = thing.body
    return entry


def state(fake, query, _):
    world = fake.world
    things = [shown(world, thing, query.get("all")) for _, thing in sorted(world.things.items())]
    return {"clock": stamp(world.now()), "things": things, "history": world.history,
            "dollars_per_hour": round(sum(world.rate(thing) for thing in world.things.values()), 6),
            "dollars": round(world.spent_before + sum(thing.spent for thing in world.things.values()), 6),
            "operations": {name: operation.done for name, operation in world.operations.items()}}


def empty(fake, *_):
    left = [name for name, thing in sorted(fake.world.things.items()) if not thing.given]
    lost = [name for name in fake.world.given_names if name not in fake.world.things]
    return {"empty": not left and not lost, "left": left, "lost": lost}


def held(fake, *_):
    return {"held": fake.held}


def log(fake, query, _):
    return [entry for entry in fake.entries if entry["n"] > int(query.get("after", 0))]


def preempt(fake, _, body):
    for thing in things_like(fake.world, body["name"]):
        if thing.kind == tpu_nodes.KIND:
            tpu_limits.preempt(fake.world, thing, body.get("state", "PREEMPTED"))
        elif thing.kind == compute_instances.instances.kind:
            compute_instances.preempt(fake.world, thing, body.get("state", "TERMINATED"))
    return {}


def add(fake, _, body):
    thing = services.add(fake.world, body)
    if thing.given:
        fake.world.given_names.append(thing.name)
    return {}


def maintenance(fake, _, body):
    for thing in things_like(fake.world, body["name"]):
        tpu_limits.maintenance(fake.world, thing, body)
    return {}


def edit(fake, _, body):
    for thing in things_like(fake.world, body["name"]):
        if body.get("remove"):
            fake.world.remove(thing.name, "removed by hand")
        else:
            fake.world.settle()
            thing.body.update(body["body"])
    return {}


def set_config(fake, _, body):
    fake.world.config.update(body)
    if "zones" in body:
        fake.world.zones = body["zones"]
    return {}


def clock(fake, _, body):
    if "advance" in body:
        fake.world.advance(body["advance"])
    if "speed" in body:
        fake.world.set_speed(body["speed"])
    return {"clock": stamp(fake.world.now())}


def faults(fake, _, body):
    if isinstance(body, dict) and body.get("clear"):
        fake.faults.clear()
    else:
        fake.faults.add(body if isinstance(body, list) else [body])
    return {"next": fake.number + 1}


def reset(fake, _, body):
    fake.reset(body)
    return {}


def stop(fake, *_):
    threading.Timer(0.1, fake.shutdown).start()  # the answer goes first
    return {}


CALLS = {("GET", "state"): state, ("GET", "empty"): empty, ("GET", "log"): log, ("GET", "held"): held, ("POST", "preempt"): preempt, ("POST", "add"): add,
         ("POST", "maintenance"): maintenance, ("POST", "edit"): edit, ("POST", "set"): set_config,
         ("POST", "clock"): clock, ("POST", "faults"): faults, ("POST", "reset"): reset, ("POST", "stop"): stop}


def answer(fake, verb, path, query, raw):
    call = CALLS.get((verb, path[len("/_fake/"):]))
    if call is None:
        return 404, {"error": f"no such call: {verb} {path}; there are {sorted(' '.join(key) for key in CALLS)}"}
    world = fake.world
    with world.lock:
        try:
            world.tick()
            result = call(fake, query, json.loads(raw) if raw else {})
            fake.world.tick()
            return 200, result
        except Exception:  # a wrong call, or a mistake of the fake's: the test sees it
            return 400, {"error": traceback.format_exc()}
