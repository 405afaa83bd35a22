"""What is there before the first request: the configuration's "resources", each {"name": path from projects/ on, "body",
"state", "ours": true}. They count as given (the emptiness check passes over them) unless "ours" says otherwise."""

from . import discovery, tpu_nodes, tpu_queue
from .world import seconds_of, stamp

KINDS = {"nodes": tpu_nodes.KIND, "queuedResources": tpu_queue.KIND}


def given(world):
    for entry in world.config.get("resources", []):
        add(world, entry)
    world.given_names = [name for name, thing in world.things.items() if thing.given]


def add(world, entry):
    name = entry["name"]
    collection = name.split("/")[-2]
    thing = MAKERS[collection](world, name, dict(entry.get("body", {})))
    thing.given = not entry.get("ours", False)
    if "state" in entry:
        if isinstance(thing.body.get("state"), dict):
            thing.body["state"] = {"state": entry["state"], "stateInitiator": "SERVICE"}
        else:
            thing.body["state" if "state" in thing.body else "status"] = entry["state"]
    if "created" in entry:
        thing.created = thing.settled = seconds_of(entry["created"])
        for field in ("createTime", "creationTimestamp", "timeCreated"):
            if field in thing.body:
                thing.body[field] = entry["created"]
    world.settle()
    return thing


def node(world, name, body):
    body.setdefault("acceleratorType", "v6e-8")
    body.setdefault("runtimeVersion", "v2-alpha-tpuv6e")
    thing = tpu_nodes.add_node(world, name, body, discovery.document("tpu.v2"), body.get("queuedResource"))
    tpu_nodes.make_ready(world, thing)
    return thing


def queued(world, name, body):
    thing = world.add(tpu_queue.KIND, name, {**body, "name": name, "createTime": stamp(world.now())})
    thing.body.setdefault("state", {"state": "ACTIVE", "stateInitiator": "SERVICE"})
    thing.private.update(until=None, after=0, document=discovery.document("tpu.v2"))
    return thing


MAKERS = {"nodes": node, "queuedResources": queued}
