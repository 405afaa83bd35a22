"""Compute Engine: disks and their types; of snapshots, images, reservations and addresses only that they exist."""

from . import catalog, compute_base, compute_operations
from .calls import answers
from .compute_base import Collection
from .compute_operations import ROOT
from .refusal import Refusal, not_found

disks = Collection("disks", "zones", "disk", state="READY", begin_state="CREATING")
snapshots = Collection("snapshots", "global", "snapshot", state="READY", begin_state="CREATING")
images = Collection("images", "global", "image", state="READY", begin_state="PENDING")
reservations = Collection("reservations", "zones", "reservation", state="READY", begin_state="CREATING")
addresses = Collection("addresses", "regions", "address", state="RESERVED", begin_state="RESERVING", end_state=None)
DEFAULT_GB = {"pd-standard": 500}


def hourly(thing):
    kind = thing.body["type"].rsplit("/", 1)[1]
    return int(thing.body["sizeGb"]) * catalog.DISK_MONTH.get(kind, 0.1) / catalog.HOURS_A_MONTH


def fill(call, thing):
    body = thing.body
    zone = thing.name.split("/")[3]
    kind = body.get("type", "pd-standard").rsplit("/", 1)[-1]
    if kind not in catalog.DISK_MONTH:
        raise Refusal(400, f"Invalid value for field 'resource.type': '{body['type']}'. The referenced diskType resource "
                      "cannot be found.")
    body["type"] = f"{ROOT}projects/{call.get('project')}/zones/{zone}/diskTypes/{kind}"
    image = body.get("sourceImage") or call.get("sourceImage")
    body["sizeGb"] = str(body.get("sizeGb") or (10 if image else DEFAULT_GB.get(kind, 100)))
    if not (4 if kind.startswith("hyperdisk") else 10) <= int(body["sizeGb"]) <= 65536 * 2:
        raise Refusal(400, f"Invalid value for field 'resource.sizeGb': '{body['sizeGb']}'. Disk size is too small or too "
                      "large.")
    check_access(body, kind)
    total = sum(int(other.body["sizeGb"]) for other in call.world.of_kind(disks.kind) if other is not thing
                and compute_base.region_of(other) == compute_base.region_of(thing))
    metric = "SSD_TOTAL_GB" if kind in ("pd-ssd", "pd-balanced") else "DISKS_TOTAL_GB"
    limit = compute_base.regional_quota(call, compute_base.region_of(thing), metric, int(body["sizeGb"]), total)
    if limit is not None:
        raise Refusal(403, f"Quota '{metric}' exceeded.  Limit: {float(limit)} in region {compute_base.region_of(thing)}.",
                      reason="quotaExceeded")
    from .tpu_nodes import check_labels
    check_labels(body.get("labels", {}))


def check_access(body, kind):
    mode = body.get("accessMode")
    if mode and not kind.startswith("hyperdisk"):
        raise Refusal(400, f"Invalid value for field 'resource.accessMode': '{mode}'. {kind} has no access modes.")
    if mode == "READ_ONLY_MANY" and "sourceImage" not in body and "sourceSnapshot" not in body and kind == "hyperdisk-ml":
        body.setdefault("accessMode", mode)


def attachments(world, disk):
    """[(user's name, mode)] of instances and TPU nodes."""
    found = []
    for thing in world.things.values():
        entries = thing.body.get("disks", []) if thing.kind == "compute.instances" else (
            thing.body.get("dataDisks", []) if thing.kind == "tpu.nodes" else [])
        for entry in entries:
            if compute_base.path_of(entry.get("source", entry.get("sourceDisk", ""))) == disk.name:
                found.append((thing.name, entry.get("mode", "READ_WRITE")))
    return found


def attach_problem(world, disk, mode, hosts=1):
    """Why the disk cannot be attached once more, to so many hosts, or None."""
    others = attachments(world, disk)
    access = disk.body.get("accessMode")
    if access == "READ_ONLY_MANY" and mode != "READ_ONLY":
        return f"Disk '{disk.name}' has the access mode READ_ONLY_MANY: it can be attached only READ_ONLY."
    if any(other == "READ_WRITE" for _, other in others) or mode == "READ_WRITE" and others:
        return f"The disk resource '{disk.name}' is already being used by '{others[0][0]}'"
    if mode == "READ_ONLY" and (others or hosts > 1) and is_hyperdisk(disk) and access != "READ_ONLY_MANY":
        return f"Disk '{disk.name}' must have the access mode READ_ONLY_MANY for several attachments."
    return None


def is_hyperdisk(disk):
    return disk.body["type"].rsplit("/", 1)[1].startswith("hyperdisk")


def show(call, thing):
    users = [ROOT + user for user, _ in attachments(call.world, thing) if "/instances/" in user]
    return {**thing.body, "users": users} if users else thing.body


disks.fill, disks.show = fill, show


@answers("compute.disks.resize")
def resize(call):
    thing = find_by(call, "disk")
    size = call.body.get("sizeGb")
    before = thing.body["sizeGb"]
    if size is None or int(size) <= int(before):
        raise Refusal(400, f"Invalid value for field 'sizeGb': '{size}'. New disk size '{size}' GB must be larger than "
                      f"existing size '{before}' GB.")
    compute_base.check_ready(thing)

    def grow():
        call.world.settle()
        thing.body["sizeGb"] = str(size)
    return call.again(lambda: compute_operations.begin(call, thing.name, "resizeDisk", grow))


def find_by(call, key):
    call.world.check_project(call.get("project"))
    compute_base.check_place(call, "zones", call.get("zone"))
    name = f"projects/{call.get('project')}/zones/{call.get('zone')}/disks/{call.get(key)}"
    call.world.look(name)
    if name not in call.world.things:
        raise not_found("compute", name)
    return call.world.things[name]


@answers("compute.disks.setLabels")
def set_labels(call):
    thing = find_by(call, "resource")
    return change_labels(call, thing)


def change_labels(call, thing):
    """Of disks and instances; the fingerprint of the first labels may be left out."""
    from .tpu_nodes import check_labels
    check_labels(call.body.get("labels", {}))
    if "labelFingerprint" in thing.body or "labelFingerprint" in call.body:
        compute_base.check_fingerprint(thing, "labelFingerprint", call.body.get("labelFingerprint"))

    def change():
        thing.body["labels"] = call.body.get("labels", {})
        thing.body["labelFingerprint"] = compute_base.fingerprint(call.world)
    return compute_operations.begin(call, thing.name, "setLabels", change)


@answers("compute.disks.update")
def update(call):
    """Only accessMode and labels, which the query has to name."""
    thing = find_by(call, "disk")
    named = call.get("paths") or call.get("updateMask", "").split(",")
    wrong = [path for path in named if path not in ("accessMode", "labels")]
    if wrong or not named:
        raise Refusal(400, f"Invalid value for field 'paths': '{','.join(wrong)}'.")
    if "accessMode" in named:
        if call.body.get("accessMode") == "READ_ONLY_MANY" and any(
                mode == "READ_WRITE" for _, mode in attachments(call.world, thing)):
            raise compute_base.in_use("disk", thing.name, attachments(call.world, thing)[0][0])
        check_access({"accessMode": call.body.get("accessMode"), "sourceImage": ""},
                     thing.body["type"].rsplit("/", 1)[1])
    return compute_operations.begin(call, thing.name, "update",
                                    lambda: thing.body.update({path: call.body[path] for path in named}))


@answers("compute.diskTypes.list")
def list_types(call):
    zone = call.get("zone")
    compute_base.check_place(call, "zones", zone)
    return {"kind": "compute#diskTypeList", "items": [disk_type(call, zone, name) for name in catalog.DISK_MONTH]}


@answers("compute.diskTypes.get")
def get_type(call):
    compute_base.check_place(call, "zones", call.get("zone"))
    if call.get("diskType") not in catalog.DISK_MONTH:
        raise not_found("compute", f"projects/{call.get('project')}/zones/{call.get('zone')}/diskTypes/"
                        f"{call.get('diskType')}")
    return disk_type(call, call.get("zone"), call.get("diskType"))


def disk_type(call, zone, name):
    return {"kind": "compute#diskType", "name": name, "zone": f"{ROOT}projects/{call.get('project')}/zones/{zone}",
            "selfLink": f"{ROOT}projects/{call.get('project')}/zones/{zone}/diskTypes/{name}"}
