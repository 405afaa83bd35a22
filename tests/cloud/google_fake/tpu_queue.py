"""Cloud TPU: queued resources. ACCEPTED, then WAITING_FOR_RESOURCES while there is no room, PROVISIONING, ACTIVE."""

import copy
import re

from . import operations, tpu_limits, tpu_nodes
from .calls import answers, check_location, split_location
from .refusal import Refusal, already_exists, not_found, precondition
from .world import duration_of, seconds_of, stamp

KIND = "tpu.queuedResources"
TIERS = ("spot", "guaranteed", "bestEffort")
NODE_ID = r"[A-Za-z0-9_.~+%-]+"


def is_spot(body):
    return "spot" in body or body.get("provisioningModel") == "SPOT" or any(
        tpu_nodes.is_spot(spec["node"]) for spec in body["tpu"]["nodeSpec"])


def wanted_nodes(body):
    """[(node id, node)]: one for each node that the entry asks for."""
    for spec in body["tpu"]["nodeSpec"]:
        several = spec.get("multisliceParams") or spec.get("multiNodeParams")
        if several is None:
            yield spec["nodeId"], spec["node"]
            continue
        prefix = several.get("nodeIdPrefix") or body["name"].rsplit("/", 1)[1]
        for index in range(several["nodeCount"]):
            yield f"{prefix}-{index}", spec["node"]


def check_body(call, zone, body):
    """What the schema does not say."""
    specs = body.get("tpu", {}).get("nodeSpec", [])
    if len(specs) != 1:
        raise Refusal(400, "tpu.node_spec: exactly one is needed.")
    if sum(tier in body for tier in TIERS) > 1:
        raise Refusal(400, f"At most one tier of {', '.join(TIERS)} can be set.")
    spec = specs[0]
    several = spec.get("multisliceParams") or spec.get("multiNodeParams")
    if ("nodeId" in spec) == (several is not None):
        raise Refusal(400, "Exactly one of node_id and multislice_params must be set.")
    if several is not None and several["nodeCount"] < 2:
        raise Refusal(400, "multislice_params.node_count must be greater than 1.")
    identity = spec.get("nodeId") or several.get("nodeIdPrefix", "q")
    if not re.fullmatch(NODE_ID, identity):
        raise Refusal(400, f"Invalid node id '{identity}': it must match {NODE_ID}")
    if split_location(spec["parent"])[1] != zone:
        raise Refusal(400, f"node_spec.parent {spec['parent']} is not the queued resource's location {zone}")
    tpu_nodes.check_body(call, zone, spec["node"])
    if body.get("provisioningModel") == "FLEX_START":
        longest = body.get("runDuration", {}).get("maxRunDuration")
        if longest is None or not 0 < duration_of(longest) <= 7 * 86400:
            raise Refusal(400, "FLEX_START needs run_duration.max_run_duration of at most 7 days.")


@answers("tpu.projects.locations.queuedResources.create")
def create(call):
    _, zone = split_location(call.get("parent"))
    check_location(call, zone, call.world.zones)
    identity = call.get("queuedResourceId")
    if not identity or not re.fullmatch(tpu_nodes.NAME, identity):
        raise Refusal(400, f"Invalid queued resource id '{identity}': it must match {tpu_nodes.NAME}")
    name = f"{call.get('parent')}/queuedResources/{identity}"

    def make():
        if name in call.world.things:
            raise already_exists("tpu", name)
        check_body(call, zone, call.body)
        body = {**copy.deepcopy(call.body), "name": name}
        nodes = list(wanted_nodes(body))
        for node_id, _ in nodes:
            if f"{call.get('parent')}/nodes/{node_id}" in call.world.things:
                raise already_exists("tpu", f"{call.get('parent')}/nodes/{node_id}")
        tpu_limits.check_quota(call.world, zone, tpu_nodes.node_type(nodes[0][1]), is_spot(body), len(nodes), True)
        operation = operations.long_running(call.world, "tpu", call.get("parent"), name, "create", call.id, zone)
        thing = call.world.add(KIND, name, {**body, "createTime": stamp(call.world.now()),
                                            "state": {"state": "CREATING", "stateInitiator": "USER"}})
        return operations.begin(call.world, operation, lambda: accept(call.world, thing, call.document),
                                lambda: call.world.remove(name, "create failed"))
    return operations.shown(call.again(make), call.document)


def set_state(thing, state, **data):
    thing.body["state"] = {"state": state, "stateInitiator": data.pop("initiator", "SERVICE"), **data}


def accept(world, thing, document):
    set_state(thing, "ACCEPTED", acceptedData={})
    thing.private["document"] = document
    thing.private["until"] = valid_until(world, thing.body)
    thing.private["after"] = valid_after(world, thing.body)
    polls, seconds = world.timing("tpu.queue.ACCEPTED")
    world.later(thing.name, seconds, lambda: provision(world, thing), polls)
    return {"@type": "type.googleapis.com/google.cloud.tpu.v2.QueuedResource", "name": thing.name}


def valid_until(world, body):
    policy = body.get("queueingPolicy", {})
    if "validUntilDuration" in policy:
        return world.now() + duration_of(policy["validUntilDuration"])
    end = policy.get("validUntilTime") or policy.get("validInterval", {}).get("endTime")
    return seconds_of(end) if end else None


def valid_after(world, body):
    policy = body.get("queueingPolicy", {})
    if "validAfterDuration" in policy:
        return world.now() + duration_of(policy["validAfterDuration"])
    start = policy.get("validAfterTime") or policy.get("validInterval", {}).get("startTime")
    return seconds_of(start) if start else 0


def provision(world, thing):
    """Room and quota: PROVISIONING; else WAITING_FOR_RESOURCES, and asked again whenever time passes."""
    zone = split_location(thing.name)[1]
    nodes = list(wanted_nodes(thing.body))
    kind, spot = tpu_nodes.node_type(nodes[0][1]), is_spot(thing.body)
    if thing.private["until"] is not None and world.now() > thing.private["until"]:
        return fail(thing, 4, "The request was not fulfilled before valid_until.")
    room = world.now() >= thing.private["after"] and tpu_limits.fits_quota(
        world, zone, kind, spot, len(nodes)) and tpu_limits.has_capacity(world, zone, kind, spot)
    if not room:
        return set_state(thing, "WAITING_FOR_RESOURCES")
    late = world.pick("late_failures", "tpu.queue.PROVISIONING", thing.name)
    if late:
        error = operations.failure(late, zone)
        return fail(thing, error["code"], error["message"])
    set_state(thing, "PROVISIONING", provisioningData={})
    parent = thing.name.rsplit("/queuedResources/", 1)[0]
    for node_id, node in nodes:
        made = tpu_nodes.add_node(world, f"{parent}/nodes/{node_id}", copy.deepcopy(node), thing.private["document"],
                                  thing.name)
        if spot:
            made.body.setdefault("schedulingConfig", {})["spot"] = True
        if len(nodes) > 1:
            made.body["multisliceNode"] = True
        made.private["deadline"] = thing.body.get("runDuration")
    polls, seconds = world.timing("tpu.queue.PROVISIONING")
    world.later(thing.name, seconds, lambda: activate(world, thing), polls)
    return None


def fail(thing, code, message):
    set_state(thing, "FAILED", failedData={"error": {"code": code, "message": message}})


def nodes_of(world, thing):
    return [node for node in world.of_kind(tpu_nodes.KIND) if node.body.get("queuedResource") == thing.name]


def activate(world, thing):
    for node in nodes_of(world, thing):
        if node.body["state"] == "CREATING":
            tpu_nodes.make_ready(world, node)
    set_state(thing, "ACTIVE", activeData={})


def waiting(world):
    """Of World.idle_work: entries that wait are asked again."""
    for thing in world.of_kind(KIND):
        if thing.body["state"]["state"] == "WAITING_FOR_RESOURCES":
            provision(world, thing)


def find(call, name):
    check_location(call, split_location(name)[1], call.world.zones)
    call.world.look(name)
    thing = call.world.things.get(name)
    if thing is None:
        raise not_found("tpu", name)
    return thing


def shown(call, thing):
    known = call.document.schemas["QueuedResource"]["properties"]
    return {name: value for name, value in thing.body.items() if name in known}


@answers("tpu.projects.locations.queuedResources.get")
def get(call):
    return shown(call, find(call, call.get("name")))


@answers("tpu.projects.locations.queuedResources.list")
def list_queue(call):
    return tpu_nodes.listing(call, KIND, "queuedResources", shown)


@answers("tpu.projects.locations.queuedResources.delete")
def delete(call):
    """Without force only what has no nodes: ACCEPTED, WAITING_FOR_RESOURCES, FAILED, SUSPENDED."""
    thing = find(call, call.get("name"))
    return operations.shown(call.again(lambda: begin_delete(call, thing)), call.document)


def begin_delete(call, thing):
    world = call.world
    state = thing.body["state"]["state"]
    nodes = nodes_of(world, thing)
    if state == "DELETING":
        raise precondition(f"Queued resource {thing.name} is being deleted already.")
    if not call.get("force") and (nodes or state in ("PROVISIONING", "ACTIVE", "SUSPENDING")):
        raise precondition(f"Queued resource {thing.name} cannot be deleted in state {state}: its nodes "
                           f"{[node.name.rsplit('/', 1)[1] for node in nodes]} exist. Delete them first, or use force.")
    before = thing.body["state"]
    states = [node.body["state"] for node in nodes]
    world.drop_steps(thing.name)
    set_state(thing, "DELETING", deletingData={}, initiator="USER")
    for node in nodes:
        world.drop_steps(node.name, deadlines=False)
        node.body["state"] = "DELETING"
    parent = thing.name.rsplit("/queuedResources/", 1)[0]
    operation = operations.long_running(world, "tpu", parent, thing.name, "delete", call.id)

    def gone():
        for node in nodes:
            world.remove(node.name, "deleted with its queued resource")
        world.remove(thing.name, "deleted")

    def stays():
        thing.body["state"] = before
        for node, state in zip(nodes, states):
            node.body["state"] = state
    return operations.begin(world, operation, gone, stays)


@answers("tpu.projects.locations.queuedResources.reset")
def reset(call):
    """A SUSPENDED entry whose nodes are gone goes back into the queue."""
    thing = find(call, call.get("name"))
    if thing.body["state"]["state"] not in ("SUSPENDED", "ACTIVE"):
        raise precondition(f"Queued resource {thing.name} cannot be reset in state {thing.body['state']['state']}.")
    parent = thing.name.rsplit("/queuedResources/", 1)[0]
    operation = operations.long_running(call.world, "tpu", parent, thing.name, "reset", call.id)

    def again():
        for node in nodes_of(call.world, thing):
            call.world.remove(node.name, "deleted by reset")
        return accept(call.world, thing, thing.private.get("document", call.document))
    operations.begin(call.world, operation, again)
    return operations.shown(operation, call.document)
