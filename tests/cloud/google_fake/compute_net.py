"""Compute Engine: networks, subnetworks, firewalls, routers."""

import ipaddress

from . import compute_base, compute_operations
from .calls import answers
from .compute_base import Collection, resolve
from .compute_operations import ROOT
from .refusal import Refusal

networks = Collection("networks", "global", "network")
subnetworks = Collection("subnetworks", "regions", "subnetwork")
firewalls = Collection("firewalls", "global", "firewall")
routers = Collection("routers", "regions", "router")


def fill_network(call, thing):
    if "autoCreateSubnetworks" not in thing.body and "IPv4Range" not in thing.body:
        raise Refusal(400, "Invalid value for field 'resource.IPv4Range': legacy networks cannot be made any more; set "
                      "autoCreateSubnetworks.")
    thing.body.setdefault("routingConfig", {"routingMode": "REGIONAL"})


def automatic_subnetworks(call, thing):
    """A network in automatic mode has one in each region, which goes with it."""
    if not thing.body.get("autoCreateSubnetworks"):
        return
    for index, region in enumerate(call.world.regions()):
        name = f"projects/{call.get('project')}/regions/{region}/subnetworks/{thing.body['name']}"
        made = call.world.add(subnetworks.kind, name, {
            "kind": "compute#subnetwork", "id": call.world.number(), "name": thing.body["name"], "network": ROOT + thing.name,
            "ipCidrRange": f"10.{128 + index}.0.0/20", "region": f"{ROOT}projects/{call.get('project')}/regions/{region}",
            "selfLink": ROOT + name})
        made.private.update(ready=True, automatic=True)


def delete_network(call):
    def begin():  # automatic subnetworks do not hold their network
        thing = networks.find(call)
        compute_base.check_ready(thing)
        users = [user for user in compute_base.users_of(call.world, thing)
                 if not call.world.things[user].private.get("automatic")]
        if users:
            raise compute_base.in_use("network", thing.name, users[0])
        return networks.begin_delete(call, thing)
    return call.again(begin)


def network_gone(call, thing):
    for subnetwork in call.world.of_kind(subnetworks.kind):
        if compute_base.path_of(subnetwork.body["network"]) == thing.name:
            call.world.remove(subnetwork.name, "deleted with its network")


def show_network(call, thing):
    inside = [ROOT + other.name for other in call.world.of_kind(subnetworks.kind)
              if compute_base.path_of(other.body["network"]) == thing.name]
    return {**thing.body, "subnetworks": inside} if inside else thing.body


networks.fill, networks.done, networks.gone, networks.show = (
    fill_network, automatic_subnetworks, network_gone, show_network)
answers("compute.networks.delete")(delete_network)


def fill_subnetwork(call, thing):
    body = thing.body
    for field in ("name", "network", "ipCidrRange"):
        if field not in body:
            raise Refusal(400, f"Required field 'resource.{field}' not specified", reason="required")
    network = resolve(call, body["network"], "resource.network")
    body["network"] = ROOT + network.name
    try:
        mine = ipaddress.ip_network(body["ipCidrRange"])
    except ValueError:
        raise Refusal(400, f"Invalid value for field 'resource.ipCidrRange': '{body['ipCidrRange']}'.") from None
    for other in call.world.of_kind(subnetworks.kind):
        if other is not thing and other.body["network"] == body["network"] and mine.overlaps(
                ipaddress.ip_network(other.body["ipCidrRange"])):
            raise Refusal(400, f"Invalid IPCidrRange: {body['ipCidrRange']} conflicts with existing subnetwork "
                          f"'{other.body['name']}'.")
    body["gatewayAddress"] = str(mine.network_address + 1)
    body["fingerprint"] = compute_base.fingerprint(call.world)


subnetworks.fill = fill_subnetwork


def fill_firewall(call, thing):
    body = thing.body
    body.setdefault("network", "global/networks/default")
    body["network"] = ROOT + resolve(call, body["network"], "resource.network").name
    check_firewall(body)


def check_firewall(body):
    if ("allowed" in body) == ("denied" in body):
        raise Refusal(400, "Exactly one of 'allowed' and 'denied' must be specified.")
    body.setdefault("direction", "INGRESS")
    body.setdefault("priority", 1000)
    if body["direction"] == "INGRESS" and not any(
            field in body for field in ("sourceRanges", "sourceTags", "sourceServiceAccounts")):
        body["sourceRanges"] = ["0.0.0.0/0"]  # as Google does: open to everybody
    for field in ("sourceRanges", "destinationRanges"):
        for text in body.get(field, []):
            try:
                ipaddress.ip_network(text)
            except ValueError:
                raise Refusal(400, f"Invalid value for field 'resource.{field}': '{text}'.") from None
    for rule in body.get("allowed", []) + body.get("denied", []):
        if "IPProtocol" not in rule:
            raise Refusal(400, "Required field 'resource.allowed[0].IPProtocol' not specified", reason="required")


firewalls.fill = fill_firewall


@answers("compute.firewalls.patch", "compute.firewalls.update")
def change_firewall(call):
    thing = firewalls.find(call)
    body = {**thing.body, **call.body}
    check_firewall(body)
    return compute_operations.begin(call, thing.name, "patch", lambda: thing.body.update(body))


def fill_router(call, thing):
    thing.body["network"] = ROOT + resolve(call, thing.body["network"], "resource.network").name


routers.fill = fill_router


@answers("compute.routers.patch")
def change_router(call):
    thing = routers.find(call)
    return compute_operations.begin(call, thing.name, "patch", lambda: thing.body.update(call.body))
