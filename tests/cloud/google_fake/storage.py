"""Cloud Storage: buckets and their objects, with media, multipart and resumable uploads."""

import base64
import hashlib
import json
import re
import urllib.parse

from . import catalog, tpu_nodes
from .calls import answers
from .refusal import Refusal
from .world import stamp

try:
    import google_crc32c  # with it, objects have the checksum that clients compare
except ImportError:
    google_crc32c = None

CONDITION_NOT_MET = "At least one of the pre-conditions you specified did not hold."
KIND = "storage.buckets"
MULTI_REGIONS = ("US", "EU", "ASIA")
GIB_MONTH = 0.02


def hourly(thing):
    size = sum(len(data) for data, _ in thing.private["objects"].values())
    return size / 2**30 * GIB_MONTH / catalog.HOURS_A_MONTH


def key(name):
    return f"b/{name}"


@answers("storage.buckets.insert")
def insert(call):
    name = call.body.get("name", "")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]", name) or "goog" in name[:4] or ".." in name:
        raise Refusal(400, f"Invalid bucket name: '{name}'")
    if key(name) in call.world.things or name in call.world.config.get("taken_buckets", []):
        raise Refusal(409, "Your previous request to create the named bucket succeeded and you already own it."
                      if key(name) in call.world.things else
                      "The requested bucket name is not available. The bucket namespace is shared by all users of the "
                      "system. Please select a different name and try again.", reason="conflict")
    place = call.body.get("location", "US").upper()
    if place not in MULTI_REGIONS and place.lower() not in call.world.regions():
        raise Refusal(400, f"The specified location constraint is not valid: {place}", reason="invalid")
    tpu_nodes.check_labels(call.body.get("labels", {}))
    thing = call.world.add(KIND, key(name), completed(call.world, {**call.body, "location": place}))
    thing.private.update(objects={}, project=call.get("project"))
    return thing.body


def completed(world, body):
    now = stamp(world.now())
    place = body.get("location", "US").upper()
    return {**body, "kind": "storage#bucket", "id": body["name"], "location": place,
            "selfLink": f"https://www.googleapis.com/storage/v1/b/{body['name']}",
            "locationType": "multi-region" if place in MULTI_REGIONS else "region",
            "storageClass": body.get("storageClass", "STANDARD"), "timeCreated": now, "updated": now,
            "metageneration": "1", "projectNumber": "1234567890", "etag": "CAE="}


def find(call, parameter="bucket"):
    name = call.get(parameter)
    if name in call.world.config.get("taken_buckets", []):
        raise Refusal(403, f"somebody@example.com does not have storage.buckets.get access to the Google Cloud Storage "
                      f"bucket. Permission 'storage.buckets.get' denied on resource (or it may not exist).")
    thing = call.world.things.get(key(name))
    if thing is None:
        raise Refusal(404, "The specified bucket does not exist.")
    return thing


@answers("storage.buckets.get")
def get(call):
    return find(call).body


@answers("storage.buckets.list")
def list_buckets(call):
    call.world.check_project(call.get("project"))
    found = [thing.body for thing in call.world.of_kind(KIND) if thing.private["project"] == call.get("project")
             and thing.body["name"].startswith(call.get("prefix", ""))]
    page, token = call.page(found, 1000)
    return {"kind": "storage#buckets", **({"items": page} if page else {}), **token}


@answers("storage.buckets.patch", "storage.buckets.update")
def patch(call):
    thing = find(call)
    tpu_nodes.check_labels({name: value for name, value in call.body.get("labels", {}).items() if value is not None})
    labels = {**thing.body.get("labels", {}), **call.body.get("labels", {})}
    thing.body.update(call.body)
    thing.body["labels"] = {name: value for name, value in labels.items() if value is not None}
    thing.body["metageneration"] = str(int(thing.body["metageneration"]) + 1)
    return thing.body


@answers("storage.buckets.delete")
def delete(call):
    thing = find(call)
    if thing.private["objects"]:
        raise Refusal(409, "The bucket you tried to delete is not empty.", reason="conflict")
    call.world.remove(thing.name, "deleted")


@answers("storage.buckets.testIamPermissions")
def permissions(call):
    find(call)
    denied = call.world.config.get("denied_permissions", [])
    given = call.get("permissions", [])
    return {"kind": "storage#testIamPermissionsResponse", "permissions": [name for name in given if name not in denied]}


# Objects.

def shown(bucket, name, stored):
    data, meta = stored
    checksum = {} if google_crc32c is None else {
        "crc32c": base64.b64encode(google_crc32c.value(data).to_bytes(4, "big")).decode()}
    path = f"/b/{bucket}/o/{urllib.parse.quote(name, safe='')}"
    return {"kind": "storage#object", "bucket": bucket, "name": name, "size": str(len(data)), **meta, **checksum,
            "id": f"{bucket}/{name}/{meta['generation']}", "storageClass": "STANDARD", "etag": meta["generation"],
            "selfLink": f"https://www.googleapis.com/storage/v1{path}",
            "mediaLink": f"https://storage.googleapis.com/download/storage/v1{path}?generation={meta['generation']}&alt=media",
            "md5Hash": base64.b64encode(hashlib.md5(data).digest()).decode()}


def store(call, thing, name, data, meta):
    held = thing.private["objects"].get(name)
    wanted = call.get("ifGenerationMatch")
    if wanted is not None and str(wanted) != (held[1]["generation"] if held else "0"):
        raise Refusal(412, CONDITION_NOT_MET)
    now = stamp(call.world.now())
    meta = {**{field: value for field, value in meta.items() if field in ("contentType", "metadata", "contentEncoding")},
            "generation": str(int(call.world.now() * 1e6)), "metageneration": "1", "timeCreated": now, "updated": now}
    thing.private["objects"][name] = (data, meta)
    return shown(thing.body["name"], name, thing.private["objects"][name])


@answers("storage.objects.insert")
def upload(call):
    thing = find(call)
    how = call.get("uploadType", "media")
    kind = call.headers.get("Content-Type", "application/octet-stream")
    if how == "media":
        return store(call, thing, call.get("name"), call.raw, {"contentType": kind})
    if how == "multipart":
        meta, data = parts(call.raw, kind)
        return store(call, thing, call.get("name") or meta["name"], data, meta)
    meta = json.loads(call.raw) if call.raw else {}
    identity = call.world.number()
    call.world.uploads[identity] = (call, thing, call.get("name") or meta["name"], meta, bytearray())
    host = call.headers.get("Host")
    call.answer_headers["Location"] = f"http://{host}/upload/storage/v1/b/{call.get('bucket')}/o?uploadType=resumable&" \
                                      f"upload_id={identity}"
    return b""


def parts(raw, kind):
    """(JSON, bytes) of a multipart/related body."""
    boundary = b"--" + re.search(r"boundary=[\"']?([^\"';]+)", kind).group(1).encode()
    first, second = (re.split(rb"\r?\n\r?\n", part, maxsplit=1)[1] for part in raw.split(boundary)[1:3])
    return json.loads(first), re.sub(rb"\r?\n\Z", b"", second)


def resume(world, verb, identity, span, raw):
    """A PUT of a piece, or the DELETE that gives up: (status, JSON, headers)."""
    if identity not in world.uploads:
        return 404, None, {}
    if verb == "DELETE":
        del world.uploads[identity]
        return 499, None, {}
    call, thing, name, meta, held = world.uploads[identity]
    match = re.fullmatch(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)", span or "")
    if match and match.group(1):
        del held[int(match.group(1)):]
    held += raw
    if match is None or match.group(3) != "*" and len(held) >= int(match.group(3)):
        try:
            return 200, store(call, thing, name, bytes(held), meta), {}
        except Refusal as refusal:
            return refusal.code, refusal.body("storage"), {}
    return 308, None, {"Range": f"bytes=0-{len(held) - 1}"} if held else {}


def find_object(call):
    thing = find(call)
    held = thing.private["objects"].get(call.get("object"))
    if held is None:
        raise Refusal(404, f"No such object: {call.get('bucket')}/{call.get('object')}")
    if call.get("generation") not in (None, held[1]["generation"]):
        raise Refusal(404, f"No such object: {call.get('bucket')}/{call.get('object')}#{call.get('generation')}")
    return thing, held


@answers("storage.objects.get")
def get_object(call):
    _, held = find_object(call)
    if call.get("alt") != "media":
        return shown(call.get("bucket"), call.get("object"), held)
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", call.headers.get("Range", ""))
    if not match:
        return held[0]
    first, last = int(match.group(1)), min(int(match.group(2) or len(held[0]) - 1), len(held[0]) - 1)
    call.answer_status = 206
    call.answer_headers["Content-Range"] = f"bytes {first}-{last}/{len(held[0])}"
    return held[0][first:last + 1]


@answers("storage.objects.rewrite", "storage.objects.copy")
def copy_object(call):
    """Within one call, however large."""
    source = find(call, "sourceBucket").private["objects"].get(call.get("sourceObject"))
    if source is None:
        raise Refusal(404, f"No such object: {call.get('sourceBucket')}/{call.get('sourceObject')}")
    if call.get("sourceGeneration") not in (None, source[1]["generation"]):
        raise Refusal(404, f"No such generation of {call.get('sourceBucket')}/{call.get('sourceObject')}")
    made = store(call, find(call, "destinationBucket"), call.get("destinationObject"), source[0], source[1])
    if call.id.endswith("copy"):
        return made
    return {"kind": "storage#rewriteResponse", "done": True, "objectSize": made["size"], "resource": made,
            "totalBytesRewritten": made["size"]}


@answers("storage.objects.list")
def list_objects(call):
    thing = find(call)
    prefix, delimiter = call.get("prefix", ""), call.get("delimiter")
    names, prefixes = [], []
    for name in sorted(thing.private["objects"]):
        if not name.startswith(prefix):
            continue
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        if cut < 0:
            names.append(name)
        elif name[:cut + len(delimiter)] not in prefixes:
            prefixes.append(name[:cut + len(delimiter)])
    page, token = call.page(names, 1000)
    return {"kind": "storage#objects", **({"prefixes": prefixes} if prefixes else {}), **token,
            **({"items": [shown(call.get("bucket"), name, thing.private["objects"][name]) for name in page]} if page else {})}


@answers("storage.objects.delete")
def delete_object(call):
    thing, _ = find_object(call)
    del thing.private["objects"][call.get("object")]


@answers("storage.objects.compose")
def compose(call):
    call.parameters["bucket"] = call.get("destinationBucket")
    thing = find(call)
    parts = []
    for source in call.body["sourceObjects"]:
        if source["name"] not in thing.private["objects"]:
            raise Refusal(404, f"No such object: {call.get('destinationBucket')}/{source['name']}")
        data, meta = thing.private["objects"][source["name"]]
        if source.get("objectPreconditions", {}).get("ifGenerationMatch", meta["generation"]) != meta["generation"]:
            raise Refusal(412, CONDITION_NOT_MET)
        parts.append(data)
    if not 1 <= len(parts) <= 32:
        raise Refusal(400, "The number of source components provided must be from 1 to 32.")
    return store(call, thing, call.get("destinationObject"), b"".join(parts), call.body.get("destination", {}))
