"""What limits TPUs: the types of a zone, capacity, quota, deadlines, preemption and maintenance."""

from . import catalog
from .calls import split_location
from .refusal import Refusal
from .world import duration_of, seconds_of, stamp

QUOTA_NAMES = {"v2": "V2", "v3": "V3", "v4": "V4", "v5e": "V5sLitepod", "v5p": "V5P", "v6e": "V6E"}
HOLDS_QUOTA = ("PROVISIONING", "ACTIVE", "SUSPENDING", "SUSPENDED", "DELETING")


def offered(world, zone):
    """Types of a zone: the configured ones, else those of the catalogue."""
    return world.zones[zone].get("types") or catalog.types_of(catalog.ZONES.get(zone, ()))


def has_capacity(world, zone, kind, spot, asking=None):
    """`capacity` of a zone: {"v6e-16": slices at once} or {"v6e": chips at once}; "v6e-16:spot" is spot's own."""
    from . import tpu_nodes
    running = [thing for thing in world.of_kind(tpu_nodes.KIND) if thing is not asking
               and split_location(thing.name)[1] == zone and thing.private.get("ready") is not None
               and thing.body["state"] not in ("PREEMPTED", "STOPPED", "TERMINATED")]
    for key, limit in world.zones[zone].get("capacity", {}).items():
        name, _, tier = key.partition(":")
        alike = [thing for thing in running if name in (tpu_nodes.node_type(thing.body).name,
                                                         tpu_nodes.node_type(thing.body).generation)
                 and tier in ("", "spot" if tpu_nodes.is_spot(thing.body) else "on-demand")]
        if tier not in ("", "spot" if spot else "on-demand"):
            continue
        if name == kind.name and len(alike) >= limit:
            return False
        if name == kind.generation and sum(
                tpu_nodes.node_type(thing.body).chips for thing in alike) + kind.chips > limit:
            return False
    return True


def specs(world):
    """(zone, type, spot) of all that holds quota: nodes in any state; queue entries that hold it without a node."""
    from . import tpu_nodes, tpu_queue
    for thing in world.of_kind(tpu_nodes.KIND):
        if "queuedResource" not in thing.body:
            yield split_location(thing.name)[1], tpu_nodes.node_type(thing.body), tpu_nodes.is_spot(thing.body)
    for thing in world.of_kind(tpu_queue.KIND):
        if thing.body["state"]["state"] in HOLDS_QUOTA:
            for _, node in tpu_queue.wanted_nodes(thing.body):
                yield split_location(thing.name)[1], tpu_nodes.node_type(node), tpu_queue.is_spot(thing.body)


def quota_name(generation, spot, scope):
    place = "Region" if scope == "region" else "Zone"
    return f"TPU{QUOTA_NAMES[generation]}{'Preemptible' if spot else ''}PerProjectPer{place}ForTPUAPI"


def quota_left(world, zone, kind, spot):
    """[(what is left, limit, name, place)] of the configured quotas that apply. Entry: {"generation": "v6e",
    "capacity": "spot" | "on-demand", "region" | "zone": place, "limit": the count of the type's name}."""
    region = catalog.region_of(zone)
    for entry in world.config.get("quotas", []):
        scope = "region" if "region" in entry else "zone"
        if "generation" not in entry or entry["generation"] != kind.generation or entry[scope] not in (zone, region):
            continue
        if entry.get("capacity", "spot" if spot else "on-demand") != ("spot" if spot else "on-demand"):
            continue
        used = sum(other.count for where, other, tier in specs(world)
                   if other.generation == kind.generation and tier == spot
                   and entry[scope] in (where, catalog.region_of(where)))
        yield entry["limit"] - used, entry["limit"], entry.get("name") or quota_name(kind.generation, spot, scope), entry[scope], scope


def check_quota(world, zone, kind, spot, nodes=1, only_limit=False):
    """429 with a QuotaFailure. `only_limit`: what is in use now does not count, as for a queue entry."""
    for left, limit, name, place, scope in quota_left(world, zone, kind, spot):
        if kind.count * nodes > (limit if only_limit else left):
            message = f"Quota limit '{name}' has been exceeded. Limit: {limit} in {scope} {place}."
            raise Refusal(429, message, reason="quotaExceeded", details=[
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                 "violations": [{"subject": f"project:{world.projects[0]}", "description": message}]}])


def fits_quota(world, zone, kind, spot, nodes=1):
    return all(kind.count * nodes <= left for left, *_ in quota_left(world, zone, kind, spot))


def start_clocks(world, thing):
    """From READY on: the configured preemption and maintenance, and the server's own deadlines."""
    short = thing.name.rsplit("/", 1)[1]
    end = world.pick("preemptions", "", short)
    if end:
        world.later(thing.name, end.get("after", 0), lambda: preempt(world, thing, end.get("state", "PREEMPTED")))
    notice = world.pick("maintenance", "", short)
    if notice:
        world.later(thing.name, notice.get("after", 0), lambda: maintenance(world, thing, notice))
    limit = thing.private.get("deadline")
    if limit:
        when = seconds_of(limit["terminationTime"]) if "terminationTime" in limit else world.now() + duration_of(
            limit["maxRunDuration"])
        thing.body.setdefault("schedulingConfig", {})["terminationTimestamp"] = stamp(when)
        world.later(thing.name, when - world.now(), lambda: expire(world, thing))


def preempt(world, thing, state):
    """Google takes the node: `state` is what it shows from then on, "vanish" takes it away altogether."""
    if world.things.get(thing.name) is not thing or thing.body["state"] == "DELETING":
        return
    world.drop_steps(thing.name)
    world.note(f"preempted: {state}", thing.name)
    node_gone(world, thing, "SERVICE")
    if state == "vanish":
        world.remove(thing.name, "vanished")
        return
    thing.body["state"] = state
    thing.body["health"] = "TIMEOUT"


def maintenance(world, thing, entry):
    """Of a node, or of an instance of Compute Engine, which shows it elsewhere."""
    now = world.now()
    place = thing.body if thing.kind == "tpu.nodes" else thing.body.setdefault("resourceStatus", {})
    place["upcomingMaintenance"] = {
        "windowStartTime": stamp(now + entry.get("starts", 3600)), "windowEndTime": stamp(now + entry.get("ends", 7200)),
        "latestWindowStartTime": stamp(now + entry.get("starts", 3600)), "type": entry.get("type", "SCHEDULED"),
        "canReschedule": entry.get("reschedule", False), "maintenanceStatus": entry.get("status", "PENDING")}
    if entry.get("health"):
        thing.body["health"] = entry["health"]


def expire(world, thing):
    node_gone(world, thing, "SERVICE")
    world.remove(thing.name, "deleted at its deadline")


def node_gone(world, thing, initiator):
    """The queue entry of a node that is no more is SUSPENDED, and still holds quota."""
    queued = world.things.get(thing.body.get("queuedResource", ""))
    if queued is not None and queued.body["state"]["state"] not in ("DELETING", "FAILED"):
        queued.body["state"] = {"state": "SUSPENDED", "stateInitiator": initiator, "suspendedData": {}}


