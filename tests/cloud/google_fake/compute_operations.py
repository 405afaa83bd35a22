"""Compute Engine's operations: zonal, regional and global, with errors inside operations that are DONE."""

import time

from . import operations
from .calls import answers
from .refusal import not_found
from .world import stamp

ROOT = "https://www.googleapis.com/compute/v1/"
CODES = {3: "INVALID_USAGE", 8: "ZONE_RESOURCE_POOL_EXHAUSTED", 9: "RESOURCE_NOT_READY", 10: "RESOURCE_OPERATION_RATE_EXCEEDED",
         13: "INTERNAL_ERROR", 14: "INTERNAL_ERROR"}
HTTP = {"ZONE_RESOURCE_POOL_EXHAUSTED": (503, "SERVICE UNAVAILABLE"), "QUOTA_EXCEEDED": (403, "FORBIDDEN"),
        "INTERNAL_ERROR": (500, "INTERNAL SERVER ERROR"), "RESOURCE_NOT_READY": (400, "BAD REQUEST")}


def begin(call, thing_name, verb, action, undo=None):
    """Starts an operation in the scope of the thing and returns its body, once for a requestId."""
    scope = "/".join(thing_name.split("/")[:3 if thing_name.split("/")[2] == "global" else 4])
    zone = scope.rsplit("/", 1)[1]
    world = call.world

    def make():
        operation = operations.Operation(
            world, "compute", f"{scope}/operations/operation-{int(world.base)}-{world.unique()}", thing_name, verb,
            call.id, zone)
        target = world.things.get(thing_name)
        operation.target_id = target.body.get("id") if target else world.number()
        return operations.begin(world, operation, action, undo)
    return shown(make())


def shown(operation):
    pieces = operation.name.split("/")
    body = {"kind": "compute#operation", "id": operation.number, "name": pieces[-1], "selfLink": ROOT + operation.name,
            "operationType": operation.verb, "targetLink": ROOT + operation.target, "targetId": operation.target_id,
            "status": "DONE" if operation.done else "RUNNING", "progress": 100 if operation.done else 0,
            "user": "somebody@example.com", "insertTime": stamp(operation.created), "startTime": stamp(operation.created)}
    if pieces[2] in ("zones", "regions"):
        body[pieces[2][:-1]] = ROOT + "/".join(pieces[:4])
    if operation.done:
        body["endTime"] = stamp(operation.ended)
    if operation.error:
        code = operation.error["code"]
        code = CODES.get(code, "INTERNAL_ERROR") if isinstance(code, int) else code
        body["error"] = {"errors": [{"code": code, "message": operation.error["message"],
                                     **({"errorDetails": operation.error["details"]} if "details" in operation.error
                                        else {})}]}
        body["httpErrorStatusCode"], body["httpErrorMessage"] = HTTP.get(code, (400, "BAD REQUEST"))
    return body


def named(call):
    """The operation of a call's path."""
    scope = "global" if call.get("zone") is None and call.get("region") is None else (
        f"zones/{call.get('zone')}" if call.get("zone") else f"regions/{call.get('region')}")
    name = f"projects/{call.get('project')}/{scope}/operations/{call.get('operation')}"
    operation = call.world.operations.get(name)
    if operation is None:
        raise not_found("compute", name)
    return operation


@answers("compute.zoneOperations.get", "compute.regionOperations.get", "compute.globalOperations.get")
def get(call):
    operation = named(call)
    call.world.look(operation.name)
    return shown(operation)


@answers("compute.zoneOperations.wait", "compute.regionOperations.wait", "compute.globalOperations.wait")
def wait(call):
    """At most two minutes at Google; here at most two seconds of real time, and what needs looks gets them."""
    operation = named(call)
    end = time.monotonic() + min(2.0, 120 / max(call.world.speed, 1))
    while not operation.done:
        call.world.look(operation.name)
        step = next((step for step in call.world.steps if step.operation is operation), None)
        if operation.done or step is None or step.due > call.world.now():
            if operation.done or time.monotonic() > end:
                break
            call.world.lock.release()
            try:
                time.sleep(0.02)
            finally:
                call.world.lock.acquire()
            call.world.tick()
    return shown(operation)


@answers("compute.zoneOperations.list", "compute.regionOperations.list", "compute.globalOperations.list")
def list_all(call):
    place = call.get("zone") or call.get("region")
    under = f"projects/{call.get('project')}/" + (
        f"zones/{place}" if call.get("zone") else f"regions/{place}" if place else "global") + "/operations/"
    page, token = call.page([operation for name, operation in sorted(call.world.operations.items())
                             if name.startswith(under)], 500)
    return {"kind": "compute#operationList", "items": [shown(operation) for operation in page], **token}


@answers("compute.zoneOperations.delete", "compute.regionOperations.delete", "compute.globalOperations.delete")
def delete(call):
    del call.world.operations[named(call).name]
