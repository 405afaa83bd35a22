"""Cloud TPU: nodes."""

import hashlib
import re

from . import catalog, compute_disks, operations, tpu_limits
from .calls import answers, check_location, split_location
from .operations import LateError
from .refusal import Refusal, already_exists, not_found, precondition
from .world import stamp

KIND = "tpu.nodes"
NAME = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
RUNNING = ("CREATING", "READY", "RESTARTING", "REIMAGING", "REPAIRING", "STARTING", "STOPPING")
MASKS = ("description", "tags", "labels", "metadata", "network_config.enable_external_ips",
         "networkConfig.enableExternalIps")


def is_spot(body):
    scheduling = body.get("schedulingConfig", {})
    return bool(scheduling.get("spot") or scheduling.get("preemptible") or
                scheduling.get("provisioningModel") == "SPOT")


def node_type(body):
    name = body.get("acceleratorType") or catalog.type_of_config(body["acceleratorConfig"])
    return catalog.tpu_type(name)


def hourly(thing):
    """Google charges from READY on until a node stops being one."""
    billed = thing.body["state"] in ("READY", "RESTARTING", "REIMAGING", "REPAIRING", "STOPPING", "DELETING")
    return node_type(thing.body).hourly(is_spot(thing.body)) if billed else 0.0


def check_body(call, zone, body):
    """What the schema does not say about a node."""
    if ("acceleratorType" in body) == ("acceleratorConfig" in body):
        raise Refusal(400, "Exactly one of accelerator_type and accelerator_config must be set.")
    kind = node_type(body)
    offered = tpu_limits.offered(call.world, zone)
    if kind is None or kind.name not in offered:
        name = body.get("acceleratorType", body.get("acceleratorConfig"))
        raise Refusal(400, f'Cloud TPU received an invalid AcceleratorType, "{name}" for zone "{zone}".')
    if body["runtimeVersion"] not in call.world.config.get("runtime_versions", catalog.RUNTIME_VERSIONS):
        raise Refusal(404, f'Runtime version "{body["runtimeVersion"]}" is not found in {zone}.')
    check_labels(body.get("labels", {}))
    if len(body.get("description", "")) > 512:
        raise Refusal(400, "description has at most 512 characters")
    check_neighbours(call, body)


def check_labels(labels):
    if len(labels) > 64:
        raise Refusal(400, "at most 64 labels")
    for name, value in labels.items():
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", name) or not re.fullmatch(r"[a-z0-9_-]{0,63}", value):
            raise Refusal(400, f"Invalid label '{name}={value}': keys match [a-z][a-z0-9_-]{{0,62}}, values "
                          "[a-z0-9_-]{0,63}")


def check_neighbours(call, body):
    """Networks and disks that the node names exist."""
    project = call.get("parent").split("/")[1]
    network = body.get("networkConfig", {}).get("network")
    if network and "/" not in network:
        network = f"projects/{project}/global/networks/{network}"
    if network and network.split("v1/")[-1] not in call.world.things:
        raise Refusal(400, f"Network '{network}' was not found.")
    for disk in body.get("dataDisks", []):
        found = call.world.things.get(disk.get("sourceDisk", "").split("v1/")[-1])
        if found is None:
            raise Refusal(400, f"The disk '{disk.get('sourceDisk')}' was not found.")
        kind = node_type(body)
        if compute_disks.is_hyperdisk(found) != (kind.generation == "v6e"):
            raise Refusal(400, f"The disk '{found.name}' of type {found.body['type'].rsplit('/', 1)[1]} cannot be attached to "
                          f"a {kind.name}.")
        problem = compute_disks.attach_problem(call.world, found, disk.get("mode", "READ_WRITE"), kind.hosts)
        if problem:
            raise Refusal(400, problem)


@answers("tpu.projects.locations.nodes.create")
def create(call):
    project, zone = split_location(call.get("parent"))
    check_location(call, zone, call.world.zones)
    identity = call.get("nodeId")
    if not identity or not re.fullmatch(NAME, identity):
        raise Refusal(400, f"Invalid node id '{identity}': it must match {NAME}")
    name = f"{call.get('parent')}/nodes/{identity}"

    def make():
        if name in call.world.things:
            raise already_exists("tpu", name)
        check_body(call, zone, call.body)
        tpu_limits.check_quota(call.world, zone, node_type(call.body), is_spot(call.body))
        operation = operations.long_running(call.world, "tpu", call.get("parent"), name, "create", call.id, zone)
        thing = add_node(call.world, name, call.body, call.document)
        return operations.begin(call.world, operation, lambda: become_ready(call.world, thing),
                                lambda: call.world.remove(name, "create failed"))
    return operations.shown(call.again(make), call.document)


def add_node(world, name, body, document, queued=None):
    """A node in CREATING."""
    version = document.name.split(".")[1].upper().replace("V2ALPHA1", "V2_ALPHA1")
    full = {**body, "name": name, "state": "CREATING", "id": world.number(), "createTime": stamp(world.now()),
            "apiVersion": version}
    kind = node_type(body)
    full.setdefault("acceleratorType", kind.name)
    full.setdefault("acceleratorConfig", {"type": kind.config, "topology": kind.topology()})
    if queued:
        full["queuedResource"] = queued
    return world.add(KIND, name, full)


def become_ready(world, thing):
    """The effect of create: the hosts are there. Raises a LateError where the zone has no room."""
    zone = split_location(thing.name)[1]
    kind = node_type(thing.body)
    if not tpu_limits.has_capacity(world, zone, kind, is_spot(thing.body), thing):
        raise LateError(8, operations.MESSAGES[8].replace("{zone}", zone))
    make_ready(world, thing)
    return {"@type": "type.googleapis.com/google.cloud.tpu.v2.Node", **thing.body}


def make_ready(world, thing):
    thing.body.update({"state": "READY", "health": "HEALTHY"})
    thing.private["hosts"] = hosts = take_hosts(world, thing)
    external = thing.body.get("networkConfig", {}).get("enableExternalIps", True)
    thing.body["networkEndpoints"] = [
        {"ipAddress": host["ip"], "port": host.get("port", 8470),
         **({"accessConfig": {"externalIp": host["external"]}} if external and host.get("external") else {})}
        for host in hosts]
    thing.private["ready"] = world.now()
    tpu_limits.start_clocks(world, thing)


def take_hosts(world, thing):
    """The configured hosts of this node, else free ones of the configured pool, else made-up ones."""
    wanted = node_type(thing.body).hosts
    short = thing.name.rsplit("/", 1)[1]
    for expression, hosts in world.config.get("hosts_of", {}).items():
        if re.fullmatch(expression, short):
            return hosts[:wanted]
    used = {host["ip"] for other in world.of_kind(KIND) for host in other.private.get("hosts", [])
            if other.body["state"] in RUNNING and other is not thing}
    free = [host for host in world.config.get("hosts", []) if host["ip"] not in used]
    if len(free) >= wanted:
        return free[:wanted]
    number = world.unique()
    return [{"ip": f"10.{128 + number // 250 % 100}.{number % 250}.{index + 2}",
             "external": f"203.0.113.{(number + index) % 250 + 1}"} for index in range(wanted)]


def find(call, name):
    """The node, after a look at it."""
    check_location(call, split_location(name)[1], call.world.zones)
    call.world.look(name)
    thing = call.world.things.get(name)
    if thing is None:
        raise not_found("tpu", name)
    return thing


def shown(call, thing):
    """With the fields that this version of the API has."""
    body = {name: value for name, value in thing.body.items() if name in call.document.schemas["Node"]["properties"]}
    if "schedulingConfig" in body:
        known = call.document.schemas["SchedulingConfig"]["properties"]
        body["schedulingConfig"] = {name: value for name, value in body["schedulingConfig"].items() if name in known}
    return body


@answers("tpu.projects.locations.nodes.get")
def get(call):
    return shown(call, find(call, call.get("name")))


@answers("tpu.projects.locations.nodes.list")
def list_nodes(call):
    return listing(call, KIND, "nodes", shown)


def listing(call, kind, field, show):
    """One zone, or all with "-": those that cannot be reached are named."""
    project, zone = split_location(call.get("parent"))
    world = call.world
    answer = {}
    if zone == "-":
        unreachable = [f"projects/{project}/locations/{other}" for other in world.zones if not world.reachable(other)]
        things = [thing for thing in world.of_kind(kind, f"projects/{project}/locations/")
                  if world.reachable(split_location(thing.name)[1])]
        if unreachable:
            answer["unreachable"] = unreachable
    else:
        check_location(call, zone, world.zones)
        things = world.of_kind(kind, call.get("parent") + "/")
    page, token = call.page(things)
    for thing in page:
        world.look(thing.name)
    items = [show(call, thing) for thing in page if thing.name in world.things]
    return {**({field: items} if items else {}), **answer, **token}


@answers("tpu.projects.locations.nodes.delete")
def delete(call):
    name = call.get("name")
    thing = find(call, name)
    return operations.shown(call.again(lambda: begin_delete(call, thing)), call.document)


def begin_delete(call, thing):
    if thing.body["state"] == "DELETING":
        raise precondition(f"Node {thing.name} is being deleted already.")
    call.world.drop_steps(thing.name, deadlines=False)
    before = thing.body["state"]
    thing.body["state"] = "DELETING"
    parent = thing.name.rsplit("/nodes/", 1)[0]
    operation = operations.long_running(call.world, "tpu", parent, thing.name, "delete", call.id)

    def gone():
        tpu_limits.node_gone(call.world, thing, "USER")
        call.world.remove(thing.name, "deleted")
    return operations.begin(call.world, operation, gone, lambda: thing.body.update(state=before))


@answers("tpu.projects.locations.nodes.patch")
def patch(call):
    thing = find(call, call.get("name"))
    mask = [field for field in call.get("updateMask", "").split(",") if field]
    wrong = [field for field in mask if field not in MASKS]
    if wrong or not mask:
        raise Refusal(400, f"updateMask: {wrong or 'nothing'} cannot be updated; {', '.join(MASKS[:5])} can")
    more = [field for field in call.body if not any(field == m.split(".")[0].replace("network_config", "networkConfig")
                                                    for m in mask)]
    if more:
        raise Refusal(400, f"fields {more} are in the body, but not in updateMask {mask}")
    check_labels(call.body.get("labels", {}))
    parent = thing.name.rsplit("/nodes/", 1)[0]
    operation = operations.long_running(call.world, "tpu", parent, thing.name, "update", call.id)
    state = thing.body["state"]
    error = None if state in ("READY", "STOPPED") else {
        "code": 3, "message": f"Updating node {thing.name} is not supported while in state {state}."}

    def update():
        for field in mask:
            field = field.split(".")[0].replace("network_config", "networkConfig")
            if field == "networkConfig":
                thing.body.setdefault(field, {}).update(call.body.get(field, {}))
            elif field in call.body:
                thing.body[field] = call.body[field]
            else:
                thing.body.pop(field, None)
        return {"@type": "type.googleapis.com/google.cloud.tpu.v2.Node", **shown(call, thing)}
    operations.begin(call.world, operation, update, error=error)
    return operations.shown(operation, call.document)


def change_state(call, verb, wanted, through, then, after=None):
    thing = find(call, call.get("name"))
    if thing.body["state"] not in wanted:
        raise precondition(f"Node {thing.name} cannot {verb} while in state {thing.body['state']}.")
    parent = thing.name.rsplit("/nodes/", 1)[0]
    before = thing.body["state"]
    thing.body["state"] = through
    operation = operations.long_running(call.world, "tpu", parent, thing.name, verb, call.id)

    def finish():
        thing.body["state"] = then
        if after:
            after(thing)
        return {"@type": "type.googleapis.com/google.cloud.tpu.v2.Node", **shown(call, thing)}
    operations.begin(call.world, operation, finish, lambda: thing.body.update(state=before))
    return operations.shown(operation, call.document)


@answers("tpu.projects.locations.nodes.stop")
def stop(call):
    thing = find(call, call.get("name"))
    if node_type(thing.body).hosts > 1:
        raise Refusal(400, f"Node {thing.name} has several hosts: Pods cannot be stopped.")
    return change_state(call, "stop", ("READY",), "STOPPING", "STOPPED",
                        lambda node: node.body.pop("networkEndpoints", None))


@answers("tpu.projects.locations.nodes.start")
def start(call):
    return change_state(call, "start", ("STOPPED", "TERMINATED"), "STARTING", "READY",
                        lambda node: make_ready(call.world, node))


@answers("tpu.projects.locations.nodes.getGuestAttributes")
def guest_attributes(call):
    """The host keys that each worker's guest agent writes."""
    thing = find(call, call.get("name"))
    hosts = thing.private.get("hosts", []) if thing.body["state"] == "READY" else []
    workers = call.body.get("workerIds") or [str(index) for index in range(len(hosts))]
    path = call.body.get("queryPath", "").strip("/")
    found = []
    for worker in workers:
        if not worker.isdigit() or int(worker) >= len(hosts):
            raise Refusal(400, f"there is no worker {worker} in {thing.name}: it has {len(hosts)}")
        items = [{"namespace": "hostkeys", "key": key, "value": value}
                 for key, value in host_keys(call.world, hosts[int(worker)]).items()
                 if not path or f"hostkeys/{key}".startswith(path)]
        found.append({"queryPath": call.body.get("queryPath", ""), "queryValue": {"items": items}})
    return {"guestAttributes": found}


def host_keys(world, host):
    """{type: base64}: configured by address, else made up, the same each time."""
    configured = world.config.get("host_keys", {}).get(host["ip"]) or host.get("host_keys")
    if configured is not None:
        return configured
    digest = hashlib.sha256(host["ip"].encode()).hexdigest()
    return {"ssh-ed25519": "AAAAC3NzaC1lZDI1NTE5AAAAI" + digest[:43]}


@answers("tpu.projects.locations.nodes.simulateMaintenanceEvent")
def simulate_maintenance(call):
    thing = find(call, call.get("name"))
    parent = thing.name.rsplit("/nodes/", 1)[0]
    operation = operations.long_running(call.world, "tpu", parent, thing.name, "simulateMaintenanceEvent", call.id)
    operations.begin(call.world, operation, lambda: tpu_limits.maintenance(call.world, thing, {"status": "ONGOING"}))
    return operations.shown(operation, call.document)
