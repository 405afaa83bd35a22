"""Compute Engine: the project and its metadata, regions with quotas, zones, machine types."""

from . import catalog, compute_base, compute_disks, compute_instances, compute_operations
from .calls import answers
from .compute_operations import ROOT
from .refusal import Refusal, not_found
from .world import stamp

FAMILIES = [f"{family}-{shape}-{cpus}" for family in ("e2", "n1", "n2", "n2d", "c3") for shape in (
    "standard", "highmem") for cpus in (2, 4, 8, 16, 32, 64, 96)] + ["e2-micro", "e2-small", "e2-medium"]


def project_metadata(world, project):
    """The commonInstanceMetadata, which the first look makes."""
    return world.metadata.setdefault(project, {
        "kind": "compute#metadata", "fingerprint": compute_base.fingerprint(world),
        "items": [{"key": key, "value": value} for key, value in world.config.get("project_metadata", {}).items()]})


@answers("compute.projects.get")
def get_project(call):
    project = call.get("project")
    call.world.look(f"projects/{project}")
    return {"kind": "compute#project", "id": "1234567890", "name": project, "selfLink": f"{ROOT}projects/{project}",
            "creationTimestamp": stamp(call.world.base), "commonInstanceMetadata": project_metadata(call.world, project),
            "defaultServiceAccount": "1234567890-compute@developer.gserviceaccount.com", "quotas": []}


@answers("compute.projects.setCommonInstanceMetadata")
def set_metadata(call):
    current = project_metadata(call.world, call.get("project"))
    compute_instances.check_metadata(call.body)
    if call.body.get("fingerprint") != current["fingerprint"]:
        raise Refusal(412, "Supplied fingerprint does not match current metadata fingerprint.")

    def change():
        call.world.metadata[call.get("project")] = {
            "kind": "compute#metadata", "items": call.body.get("items", []),
            "fingerprint": compute_base.fingerprint(call.world)}
    return compute_operations.begin(call, f"projects/{call.get('project')}/global", "compute.projects."
                                    "setCommonInstanceMetadata", change)


def usage(world, region):
    """{metric: use} of one region."""
    machines = [thing for thing in world.of_kind(compute_instances.instances.kind)
                if compute_base.region_of(thing) == region and thing.body["status"] in compute_instances.UP]
    disks = [thing for thing in world.of_kind(compute_disks.disks.kind) if compute_base.region_of(thing) == region]
    ssd = [disk for disk in disks if disk.body["type"].endswith(("pd-ssd", "pd-balanced"))]
    return {"CPUS": sum(catalog.machine(thing.body["machineType"].rsplit("/", 1)[1])[0] for thing in machines),
            "INSTANCES": len(machines), "SSD_TOTAL_GB": sum(int(disk.body["sizeGb"]) for disk in ssd),
            "DISKS_TOTAL_GB": sum(int(disk.body["sizeGb"]) for disk in disks if disk not in ssd), "IN_USE_ADDRESSES": 0,
            "STATIC_ADDRESSES": 0}


def shown_region(call, region):
    world = call.world
    limits = {entry["metric"]: entry["limit"] for entry in world.config.get("quotas", [])
              if entry.get("region") == region and "metric" in entry}
    used = usage(world, region)
    base = f"{ROOT}projects/{call.get('project')}"
    return {"kind": "compute#region", "name": region, "status": "UP", "selfLink": f"{base}/regions/{region}",
            "id": "1000", "zones": [f"{base}/zones/{zone}" for zone in world.zones if catalog.region_of(zone) == region],
            "quotas": [{"metric": metric, "limit": float(limits.get(metric, 1e6 if metric.endswith("GB") else 1000)),
                        "usage": float(used.get(metric, 0))} for metric in sorted({*used, *limits})]}


@answers("compute.regions.list")
def list_regions(call):
    page, token = call.page([shown_region(call, region) for region in call.world.regions()], 500)
    return {"kind": "compute#regionList", "items": page, **token}


@answers("compute.regions.get")
def get_region(call):
    if call.get("region") not in call.world.regions():
        raise not_found("compute", f"projects/{call.get('project')}/regions/{call.get('region')}")
    return shown_region(call, call.get("region"))


def shown_zone(call, zone):
    base = f"{ROOT}projects/{call.get('project')}"
    return {"kind": "compute#zone", "name": zone, "status": "UP" if call.world.reachable(zone) else "DOWN", "id": "2000",
            "region": f"{base}/regions/{catalog.region_of(zone)}", "selfLink": f"{base}/zones/{zone}"}


@answers("compute.zones.list")
def list_zones(call):
    page, token = call.page([shown_zone(call, zone) for zone in sorted(call.world.zones)], 500)
    return {"kind": "compute#zoneList", "items": page, **token}


@answers("compute.zones.get")
def get_zone(call):
    if call.get("zone") not in call.world.zones:
        raise not_found("compute", f"projects/{call.get('project')}/zones/{call.get('zone')}")
    return shown_zone(call, call.get("zone"))


def offered(world, zone):
    return world.zones[zone].get("machine_types", FAMILIES + ["tpu7x-standard-4t", "ct6e-standard-4t"])


def shown_machine(call, zone, name):
    cpus, mebibytes = catalog.machine(name)
    return {"kind": "compute#machineType", "id": "3000", "name": name, "guestCpus": cpus, "memoryMb": mebibytes,
            "zone": zone, "selfLink": f"{ROOT}projects/{call.get('project')}/zones/{zone}/machineTypes/{name}"}


@answers("compute.machineTypes.list")
def list_machines(call):
    compute_base.check_place(call, "zones", call.get("zone"))
    from .filters import compile_filter
    wanted = compile_filter(call.get("filter"))
    found = [shown_machine(call, call.get("zone"), name) for name in offered(call.world, call.get("zone"))]
    page, token = call.page([machine for machine in found if wanted(machine)], 500)
    return {"kind": "compute#machineTypeList", "items": page, **token}


@answers("compute.machineTypes.get")
def get_machine(call):
    compute_base.check_place(call, "zones", call.get("zone"))
    name = call.get("machineType")
    if name not in offered(call.world, call.get("zone")) or catalog.machine(name) is None:
        raise not_found("compute", f"projects/{call.get('project')}/zones/{call.get('zone')}/machineTypes/{name}")
    return shown_machine(call, call.get("zone"), name)
