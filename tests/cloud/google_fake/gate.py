"""What is asked before any method: whose token, which project, is the service enabled, is the caller allowed."""

import re

from .refusal import Refusal

# A method's verb as its permission's, where they differ.
VERBS = {"insert": "create", "aggregatedList": "list", "patch": "update"}
HOSTS = {"tpu": "tpu.googleapis.com", "compute": "compute.googleapis.com", "file": "file.googleapis.com",
         "storage": "storage.googleapis.com", "serviceusage": "serviceusage.googleapis.com",
         "cloudresourcemanager": "cloudresourcemanager.googleapis.com"}


def permission(method_id):
    """tpu.projects.locations.nodes.create -> tpu.nodes.create; compute.disks.insert -> compute.disks.create."""
    pieces = [piece for piece in method_id.split(".") if piece not in ("locations",)]
    if len(pieces) > 3 and pieces[1] == "projects":
        pieces.pop(1)
    pieces[-1] = VERBS.get(pieces[-1], pieces[-1])
    return ".".join(pieces)


def project_of(parameters):
    """The project that a call names, or None (a bucket names none)."""
    if "project" in parameters:
        return parameters["project"]
    for name in ("name", "parent", "resource"):
        match = re.match(r"projects/([^/]+)", str(parameters.get(name, "")))
        if match:
            return match.group(1)
    return None


def check(world, method, parameters, headers):
    service = method.document.service
    token = world.config.get("token")
    if token is not None and headers.get("Authorization") != f"Bearer {token}":
        raise Refusal(401, "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie "
                      "or other valid authentication credential.")
    project = project_of(parameters)
    if project is not None:
        world.check_project(project)
    name = HOSTS[service]
    if not enabled(world, name) and service not in ("serviceusage", "cloudresourcemanager"):
        raise not_enabled(name, project or world.projects[0])
    wanted = permission(method.id)
    if wanted in world.config.get("denied_permissions", []):
        raise Refusal(403, f"Permission '{wanted}' denied on resource 'projects/{project or world.projects[0]}' (or it "
                      "may not exist).", details=[
                          {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "IAM_PERMISSION_DENIED",
                           "domain": f"{service}.googleapis.com", "metadata": {"permission": wanted}}])


def enabled(world, name):
    services = world.config.get("services")
    return services is None or services.get(name, True)


def not_enabled(name, project):
    title = {"tpu": "Cloud TPU API", "compute": "Compute Engine API", "file": "Cloud Filestore API"}.get(
        name.split(".")[0], name)
    address = f"https://console.developers.google.com/apis/api/{name}/overview?project={project}"
    message = (f"{title} has not been used in project {project} before or it is disabled. Enable it by visiting {address} "
               "then retry.")
    return Refusal(403, message, reason="accessNotConfigured", details=[
        {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "SERVICE_DISABLED", "domain": "googleapis.com",
         "metadata": {"service": name, "consumer": f"projects/{project}", "activationUrl": address}}])
