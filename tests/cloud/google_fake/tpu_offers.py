"""Cloud TPU: what a zone offers: locations, types, runtime versions, reservations."""

from . import catalog, tpu_limits
from .calls import answers, check_location, known_locations, split_location
from .refusal import not_found


@answers("tpu.projects.locations.list")
def list_locations(call):
    page, token = call.page(sorted(call.world.zones))
    return {"locations": [location(call, f"{call.get('name')}/locations/{zone}") for zone in page], **token}


def location(call, name):
    return {"name": name, "locationId": name.rsplit("/", 1)[1]}


@answers("tpu.projects.locations.get")
def get_location(call):
    zone = split_location(call.get("name"))[1]
    check_location(call, zone, known_locations(call.world))
    return location(call, call.get("name"))


@answers("tpu.projects.locations.acceleratorTypes.list")
def list_types(call):
    zone = split_location(call.get("parent"))[1]
    check_location(call, zone, call.world.zones)
    page, token = call.page(tpu_limits.offered(call.world, zone))
    return {"acceleratorTypes": [accelerator(f"{call.get('parent')}/acceleratorTypes/{name}") for name in page], **token}


def accelerator(name):
    kind = catalog.tpu_type(name.rsplit("/", 1)[1])
    return {"name": name, "type": kind.name,
            "acceleratorConfigs": [{"type": kind.config, "topology": kind.topology()}]}


@answers("tpu.projects.locations.acceleratorTypes.get")
def get_type(call):
    parent, name = call.get("name").rsplit("/acceleratorTypes/", 1)
    zone = split_location(parent)[1]
    check_location(call, zone, call.world.zones)
    if name not in tpu_limits.offered(call.world, zone):
        raise not_found("tpu", call.get("name"))
    return accelerator(call.get("name"))


@answers("tpu.projects.locations.runtimeVersions.list")
def list_versions(call):
    check_location(call, split_location(call.get("parent"))[1], call.world.zones)
    page, token = call.page(list(call.world.config.get("runtime_versions", catalog.RUNTIME_VERSIONS)))
    return {"runtimeVersions": [version(f"{call.get('parent')}/runtimeVersions/{name}") for name in page], **token}


def version(name):
    return {"name": name, "version": name.rsplit("/", 1)[1]}


@answers("tpu.projects.locations.runtimeVersions.get")
def get_version(call):
    if call.get("name").rsplit("/", 1)[1] not in call.world.config.get("runtime_versions", catalog.RUNTIME_VERSIONS):
        raise not_found("tpu", call.get("name"))
    return version(call.get("name"))


@answers("tpu.projects.locations.generateServiceIdentity")
def service_identity(call):
    return {"identity": {"email": "service-1@cloud-tpu.iam.gserviceaccount.com"}}


@answers("tpu.projects.locations.reservations.list")
def list_reservations(call):
    """Those of the configuration: {zone: [{"name", …}]}."""
    zone = split_location(call.get("parent"))[1]
    check_location(call, zone, call.world.zones)
    page, token = call.page([{"state": "ACTIVE", **entry, "name": f"{call.get('parent')}/reservations/{entry['name']}"}
                             for entry in call.world.config.get("reservations", {}).get(zone, [])])
    return {**({"reservations": page} if page else {}), **token}
