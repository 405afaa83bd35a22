"""An answer that refuses, with the body that Google sends: {"error": {"code", "message", "status", "details"}}; Compute
Engine, Cloud Storage and their kin add "errors": [{"message", "domain", "reason"}]."""

STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
          409: "ALREADY_EXISTS", 412: "FAILED_PRECONDITION", 429: "RESOURCE_EXHAUSTED", 500: "INTERNAL",
          503: "UNAVAILABLE"}
REASON = {400: "invalid", 401: "authError", 403: "forbidden", 404: "notFound", 409: "alreadyExists",
          412: "conditionNotMet", 429: "rateLimitExceeded", 500: "backendError", 503: "backendError"}


class Refusal(Exception):
    """`reason` is of the old style ("resourceInUseByAnotherResource"), `status` of the new one ("NOT_FOUND")."""

    def __init__(self, code, message, *, status=None, reason=None, details=None, headers=None):
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status or STATUS.get(code, "UNKNOWN")
        self.reason = reason or REASON.get(code, "invalid")
        self.details = details or []
        self.headers = headers or {}

    def body(self, service):
        error = {"code": self.code, "message": self.message}
        if service in ("compute", "storage"):
            error["errors"] = [{"message": self.message, "domain": "global", "reason": self.reason}]
        if service != "storage":
            error["status"] = self.status
            if self.details:
                error["details"] = self.details
        return {"error": error}


def bad_request(faults):
    """What Google answers to a request that its schema does not allow."""
    violations = [{"field": fault.get("field", ""), "description": fault["message"]} for fault in faults]
    return Refusal(400, "\n".join(fault["message"] for fault in faults), details=[
        {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}])


def not_found(service, name):
    if service == "compute":
        return Refusal(404, f"The resource '{name}' was not found")
    return Refusal(404, f"Resource '{name}' was not found", details=[
        {"@type": "type.googleapis.com/google.rpc.ResourceInfo", "resourceName": name}])


def already_exists(service, name):
    if service == "compute":
        return Refusal(409, f"The resource '{name}' already exists")
    return Refusal(409, f"Resource '{name}' already exists", details=[
        {"@type": "type.googleapis.com/google.rpc.ResourceInfo", "resourceName": name}])


def precondition(message):
    return Refusal(400, message, status="FAILED_PRECONDITION", reason="failedPrecondition")
