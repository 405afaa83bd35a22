"""Long operations: google.longrunning's (TPU, Filestore, Service Usage); Compute Engine's are in compute_operations.py.
Both end as the configuration says: at once, after some looks or seconds, late with an error, or never."""

from .calls import answers
from .refusal import not_found
from .world import stamp

CODES = {1: "CANCELLED", 3: "INVALID_ARGUMENT", 5: "NOT_FOUND", 7: "PERMISSION_DENIED", 8: "RESOURCE_EXHAUSTED",
         9: "FAILED_PRECONDITION", 10: "ABORTED", 13: "INTERNAL", 14: "UNAVAILABLE"}
MESSAGES = {
    8: 'There is no more capacity in the zone "{zone}"; you can try in another zone where Cloud TPU Nodes are '
       "available (see https://cloud.google.com/tpu/docs/regions)",
    9: "Insufficient reserved capacity. Contact customer support to increase your reservation.",
    3: "The request is not supported while in state PREEMPTED", 13: "an internal error has occurred",
    10: "The operation was aborted", 14: "The service is currently unavailable",
}


class Operation:
    def __init__(self, world, service, name, target, verb, method_id, zone=""):
        self.service, self.name, self.target, self.verb, self.method_id = service, name, target, verb, method_id
        self.zone = zone
        self.number = world.number()
        self.created = self.ended = world.now()
        self.done, self.error, self.response = False, None, None

    def end(self, now, error=None, response=None):
        self.done, self.error, self.response, self.ended = True, error, response, now


def failure(entry, zone):
    """The error of an entry of late_failures."""
    code = entry.get("code", 13)
    message = entry.get("message", MESSAGES.get(code, CODES.get(code, "error")) if isinstance(code, int) else code)
    return {"code": code, "message": message.replace("{zone}", zone)}


def begin(world, operation, action, undo=None, error=None):
    """Starts the operation. At its end action() makes the effect and returns the response, or raises a LateError;
    after a late error undo() runs instead, unless the configuration says that the effect is there all the same."""
    late = world.pick("late_failures", operation.method_id, operation.target)
    never = world.pick("never_ending", operation.method_id, operation.target)
    polls, seconds = world.timing(operation.method_id)
    world.operations[operation.name] = operation

    def finish():
        failed = error or (failure(late, operation.zone) if late else None)
        response = None
        if failed is None or late and late.get("leaves") == "resource":
            try:
                response = action()
            except LateError as problem:
                failed = problem.error
        if failed is not None and not (late and late.get("leaves") == "resource") and undo is not None:
            undo()
        if never is None:
            operation.end(world.now(), failed, None if failed else response)

    step = world.later(operation.target, seconds, finish, polls)
    step.operation = operation
    return operation


class LateError(Exception):
    def __init__(self, code, message, details=None):
        super().__init__(message)
        self.error = {"code": code, "message": message}
        if details:
            self.error["details"] = details


def long_running(world, service, parent, target, verb, method_id, zone=""):
    name = f"{parent}/operations/operation-{int(world.base)}-{world.unique()}"
    return Operation(world, service, name, target, verb, method_id, zone)


def shown(operation, document):
    """As google.longrunning.Operation."""
    kind = f"type.googleapis.com/google.cloud.{document.name}"
    body = {"name": operation.name, "done": operation.done, "metadata": {
        "@type": f"{kind}.OperationMetadata", "createTime": stamp(operation.created), "target": operation.target,
        "verb": operation.verb, "apiVersion": document.name.split(".")[1], "cancelRequested": False}}
    if not operation.done:
        body.pop("done")  # as Google's JSON does with false
        return body
    body["metadata"]["endTime"] = stamp(operation.ended)
    if operation.error:
        body["error"] = operation.error
    else:
        body["response"] = operation.response or {"@type": "type.googleapis.com/google.protobuf.Empty"}
    return body


@answers("tpu.projects.locations.operations.get", "file.projects.locations.operations.get",
         "serviceusage.operations.get")
def get(call):
    name = call.get("name")
    call.world.look(name)
    return shown(find(call, name), call.document)


def find(call, name):
    operation = call.world.operations.get(name)
    if operation is None or operation.service != call.service:
        raise not_found(call.service, name)
    return operation


@answers("tpu.projects.locations.operations.list", "file.projects.locations.operations.list")
def list_all(call):
    under = call.get("name") + "/operations/"
    found = [operation for name, operation in sorted(call.world.operations.items()) if name.startswith(under)
             and operation.service == call.service]
    page, token = call.page(found)
    return {"operations": [shown(operation, call.document) for operation in page], **token}


@answers("tpu.projects.locations.operations.cancel", "file.projects.locations.operations.cancel")
def cancel(call):
    """Google does its best and promises nothing: here the operation goes on."""
    find(call, call.get("name"))
    return {}


@answers("tpu.projects.locations.operations.delete", "file.projects.locations.operations.delete")
def delete(call):
    find(call, call.get("name"))
    del call.world.operations[call.get("name")]
    return {}
