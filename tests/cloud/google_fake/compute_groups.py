"""Compute Engine: instance templates, resource policies, and managed instance groups, which make their instances
themselves, again and again where the zone has no room."""

import copy
import random

from . import catalog, compute_base, compute_instances, compute_operations
from .calls import Call, answers
from .compute_base import Collection, resolve
from .compute_operations import ROOT
from .operations import LateError
from .refusal import Refusal
from .world import stamp

templates = Collection("instanceTemplates", "global", "instanceTemplate")
policies = Collection("resourcePolicies", "regions", "resourcePolicy", state="READY", begin_state="CREATING")
groups = Collection("instanceGroupManagers", "zones", "instanceGroupManager", end_state=None)  # its status is an object


def fill_template(call, thing):
    properties = thing.body.get("properties")
    if not properties and "sourceInstance" not in thing.body:
        raise Refusal(400, "Required field 'resource.properties' not specified", reason="required")
    machine = (properties or {}).get("machineType", "")
    if "/" in machine or catalog.machine(machine) is None:
        raise Refusal(400, f"Invalid value for field 'resource.properties.machineType': '{machine}'. It is the name of a "
                      "machine type.")
    for disk in properties.get("disks", []):
        if "/" in disk.get("source", "") or "/" in disk.get("initializeParams", {}).get("diskType", ""):
            raise Refusal(400, "Invalid value for field 'resource.properties.disks': a template has the names of disks and "
                          "of their types alone.")
        if machine.startswith("tpu7x") and "initializeParams" in disk and not disk["initializeParams"].get(
                "diskType", "").startswith("hyperdisk"):
            raise Refusal(400, f"[{disk['initializeParams'].get('diskType', 'pd-standard')}] features are not compatible for "
                          "creating instance.")
    compute_instances.check_scheduling(properties.get("scheduling", {}))
    compute_instances.check_metadata(properties.get("metadata", {}))
    for interface in properties.get("networkInterfaces", []):
        for field in ("network", "subnetwork"):
            if field in interface:
                interface[field] = ROOT + resolve(call, interface[field], f"resource.properties.{field}").name


templates.fill = fill_template


def fill_policy(call, thing):
    kinds = [field for field in thing.body if field.endswith("Policy") and field != "status"]
    if len(kinds) != 1:
        raise Refusal(400, f"Invalid value for field 'resource': exactly one policy must be specified, not {kinds}.")
    if "workloadPolicy" in thing.body and "type" not in thing.body["workloadPolicy"]:
        raise Refusal(400, "Required field 'resource.workloadPolicy.type' not specified", reason="required")


policies.fill = fill_policy


def chips_of(topology):
    chips = 1
    for side in topology.split("x"):
        chips *= int(side)
    return chips


def fill_group(call, thing):
    body = thing.body
    template = resolve(call, body.get("instanceTemplate", ""), "resource.instanceTemplate")
    body["instanceTemplate"] = ROOT + template.name
    body.setdefault("baseInstanceName", body["name"])
    body["instanceGroup"] = f"{ROOT}{thing.name.replace('/instanceGroupManagers/', '/instanceGroups/')}"
    body["fingerprint"] = compute_base.fingerprint(call.world)
    policy = body.get("resourcePolicies", {}).get("workloadPolicy")
    if policy:
        found = resolve(call, policy, "resource.resourcePolicies.workloadPolicy")
        body["resourcePolicies"]["workloadPolicy"] = ROOT + found.name
        thing.private["gang"] = gang_size(found, template)
        check_gang(thing, body["targetSize"])
    thing.private["call"] = Call(call.world, call.method, dict(call.parameters), {})
    thing.private["errors"] = []
    body["status"] = {"isStable": False}


def gang_size(policy, template):
    """How many machines the topology of a policy needs: chips / chips a machine ("-4t")."""
    topology = policy.body.get("workloadPolicy", {}).get("acceleratorTopology")
    machine = template.body["properties"]["machineType"]
    if not topology or not machine.endswith("t"):
        return None
    return max(1, chips_of(topology) // int(machine.rsplit("-", 1)[1].rstrip("t")))


def check_gang(thing, size):
    gang = thing.private.get("gang")
    if gang is not None and size not in (0, gang):
        raise Refusal(400, f"Invalid value for field 'resource.targetSize': '{size}'. The accelerator topology of the "
                      f"workload policy needs {gang} instances.")


groups.fill = fill_group


def members(world, thing):
    return [other for other in world.of_kind(compute_instances.instances.kind)
            if other.private.get("group") == thing.name]


def keep(world):
    """Of World.idle_work: each group makes what it lacks and takes away what it has too much of."""
    for thing in world.of_kind(groups.kind):
        if not thing.private.get("ready") or thing.private.get("leaving") or "call" not in thing.private:
            continue
        present = members(world, thing)
        lost = [member for member in present if member.body["status"] == "TERMINATED"]
        do_nothing = thing.body.get("instanceLifecyclePolicy", {}).get("defaultActionOnFailure") == "DO_NOTHING"
        if not do_nothing:
            for member in lost:
                compute_instances.disks_go(world, member)
                world.remove(member.name, "replaced by its group")
                present.remove(member)
        had = max(len(present), thing.private.get("made", 0)) if do_nothing else len(present)
        lacking = thing.body["targetSize"] - had
        for member in present[thing.body["targetSize"]:] if lacking < 0 else []:
            compute_instances.disks_go(world, member)
            world.remove(member.name, "removed by its group")
        if lacking > 0 and thing.private.get("asked_again", 0) <= world.now():
            grow(world, thing, lacking)
        thing.body["status"] = {"isStable": lacking == 0 and all(
            member.body["status"] == "RUNNING" for member in members(world, thing))}


def grow(world, thing, lacking):
    """All that lack at once where there is a gang or BULK, else one after the other."""
    zone = thing.name.split("/")[3]
    template = world.things[compute_base.path_of(thing.body["instanceTemplate"])]
    properties = template.body["properties"]
    limit = world.zones[zone].get("capacity", {}).get(properties["machineType"])
    running = sum(other.body["machineType"].endswith("/" + properties["machineType"]) and
                  other.name.split("/")[3] == zone for other in world.of_kind(compute_instances.instances.kind))
    room = lacking if limit is None else max(0, limit - running)
    whole = thing.private.get("gang") or thing.body.get("targetSizePolicy", {}).get("mode") == "BULK"
    if room < lacking and (whole or room == 0):
        thing.private["errors"] = [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": f"The zone '{zone}' does not have "
                                    "enough resources available to fulfill the request."}]
        return
    thing.private["errors"] = []
    for _ in range(min(room, lacking)):
        add_member(world, thing, properties)


def add_member(world, thing, properties):
    letters = random.Random(world.unique())
    name = f"{thing.body['baseInstanceName']}-{''.join(letters.choices('bcdfghjklmnpqrstvwxz0123456789', k=4))}"
    path = thing.name.rsplit("/instanceGroupManagers/", 1)[0] + "/instances/" + name
    call = thing.private["call"]
    body = {**copy.deepcopy(properties), "name": name}
    for disk in body.get("disks", []):
        if "source" in disk:  # a template names the disk alone
            disk["source"] = f"{path.rsplit('/instances/', 1)[0]}/disks/{disk['source']}"
    try:
        member = compute_instances.instances.make(call, path, body)
    except Refusal as refusal:
        thing.private["errors"] = [{"code": "INVALID_USAGE", "message": refusal.message}]
        thing.private["asked_again"] = world.now() + 60
        return
    member.private["group"] = thing.name
    thing.private["made"] = thing.private.get("made", 0) + 1
    polls, seconds = world.timing("compute.instanceGroupManagers.member")

    def up():
        try:
            compute_instances.instances.made(call, member)
        except LateError as error:
            compute_instances.disks_go(world, member)
            world.remove(member.name, "create failed")
            thing.private["errors"] = [error.error]
            thing.private["asked_again"] = world.now() + 60
    world.later(member.name, seconds, up, polls)


@answers("compute.instanceGroupManagers.listManagedInstances")
def list_managed(call):
    thing = groups.find(call)
    keep(call.world)
    shown = []
    for member in members(call.world, thing):
        call.world.look(member.name)
    for member in members(call.world, thing):
        status = member.body["status"]
        action = {"PROVISIONING": "CREATING", "STOPPING": "DELETING", "TERMINATED": "NONE"}.get(status, "NONE")
        shown.append({"instance": ROOT + member.name, "name": member.body["name"], "id": member.body["id"],
                      "instanceStatus": status, "currentAction": action,
                      "version": {"instanceTemplate": thing.body["instanceTemplate"]}})
    if thing.private["errors"]:
        for index in range(thing.body["targetSize"] - len(shown)):
            name = f"{thing.body['baseInstanceName']}-{index:04d}"
            shown.append({"instance": f"{ROOT}{thing.name.rsplit('/instanceGroupManagers/', 1)[0]}/instances/{name}",
                          "currentAction": "CREATING", "lastAttempt": {"errors": {"errors": thing.private["errors"]}}})
    page, token = call.page(shown, 500)
    return {**({"managedInstances": page} if page else {}), **token}


@answers("compute.instanceGroupManagers.listErrors")
def list_errors(call):
    """Why instances that lack are not there."""
    thing = groups.find(call)
    keep(call.world)
    link = f"{ROOT}{thing.name.rsplit('/instanceGroupManagers/', 1)[0]}/instances/{thing.body['baseInstanceName']}-0000"
    items = [{"error": error, "timestamp": stamp(call.world.now()), "instanceActionDetails": {
        "action": "CREATING", "instance": link, "version": {"instanceTemplate": thing.body["instanceTemplate"]}}}
             for error in thing.private["errors"]]
    page, token = call.page(items, 500)
    return {**({"items": page} if page else {}), **token}


@answers("compute.instanceGroupManagers.deleteInstances", "compute.instanceGroupManagers.recreateInstances")
def replace_instances(call):
    """Takes members away; deleting makes the group smaller, recreating does not."""
    def begin():
        thing = groups.find(call)
        compute_base.check_ready(thing)
        names = [compute_base.path_of(link) or link for link in call.body.get("instances", [])]
        mine = {member.name: member for member in members(call.world, thing)}
        wrong = [name for name in names if name not in mine]
        if wrong or not names:
            raise Refusal(400, f"Invalid value for field 'instances': '{wrong}'. They are not members of the group.")

        def change():
            for name in names:
                compute_instances.disks_go(call.world, mine[name])
                call.world.remove(name, "replaced by hand")
            if call.id.endswith("deleteInstances"):
                thing.body["targetSize"] -= len(names)
            thing.private["made"] = len(members(call.world, thing))
            keep(call.world)
        return compute_operations.begin(call, thing.name, call.id, change)
    return call.again(begin)


@answers("compute.instanceGroupManagers.resize")
def resize(call):
    def begin():
        thing = groups.find(call)
        compute_base.check_ready(thing)
        size = int(call.get("size"))
        check_gang(thing, size)

        def change():
            thing.body["targetSize"] = size
            thing.private["made"] = len(members(call.world, thing))
            keep(call.world)
        return compute_operations.begin(call, thing.name, "compute.instanceGroupManagers.resize", change)
    return call.again(begin)


def group_gone(call, thing):
    for member in members(call.world, thing):
        compute_instances.disks_go(call.world, member)
        call.world.remove(member.name, "deleted with its group")


groups.gone = group_gone
