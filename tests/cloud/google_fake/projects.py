"""Service Usage (which services a project has enabled) and Resource Manager (the project, what the caller may do)."""

import re
from urllib.parse import quote

from . import gate, operations, tpu_limits
from .calls import answers
from .refusal import Refusal, not_found
from .world import stamp

NUMBER = "1234567890"
KNOWN = sorted([*gate.HOSTS.values(), "iam.googleapis.com", "cloudbilling.googleapis.com", "logging.googleapis.com",
                "container.googleapis.com"])


def shown(call, project, name):
    return {"name": f"projects/{NUMBER}/services/{name}", "parent": f"projects/{NUMBER}",
            "config": {"name": name, "title": name.split(".")[0]},
            "state": "ENABLED" if gate.enabled(call.world, name) else "DISABLED"}


def split(call):
    match = re.fullmatch(r"projects/([^/]+)/services/([^/]+)", call.get("name"))
    if match is None:
        raise Refusal(400, f"Invalid name '{call.get('name')}'")
    if match.group(2) not in KNOWN:
        raise Refusal(403, f"Service {match.group(2)} is not found or permission is denied.")
    return match.groups()


@answers("serviceusage.services.get")
def get_service(call):
    return shown(call, *split(call))


@answers("serviceusage.services.list")
def list_services(call):
    project = call.get("parent").split("/")[1]
    wanted = {"state:ENABLED": "ENABLED", "state:DISABLED": "DISABLED", "": None}.get(call.get("filter", ""), "?")
    if wanted == "?":
        raise Refusal(400, f"Invalid filter '{call.get('filter')}': state:ENABLED or state:DISABLED")
    found = [service for service in (shown(call, project, name) for name in KNOWN) if wanted in (None, service["state"])]
    page, token = call.page(found, 50)
    return {"services": page, **token}


@answers("serviceusage.services.batchGet")
def batch_get(call):
    found = []
    for name in call.get("names", []):
        match = re.fullmatch(r"projects/([^/]+)/services/([^/]+)", name)
        if match is None or match.group(2) not in KNOWN:
            raise Refusal(400, f"Invalid name '{name}'")
        found.append(shown(call, *match.groups()))
    return {"services": found}


@answers("serviceusage.services.enable", "serviceusage.services.disable")
def enable(call):
    project, name = split(call)
    return operation(call, call.get("name"), {name: call.id.endswith("enable")})


@answers("serviceusage.services.batchEnable")
def batch_enable(call):
    unknown = [name for name in call.body.get("serviceIds", []) if name not in KNOWN]
    if unknown or not call.body.get("serviceIds"):
        raise Refusal(400, f"Services {unknown} are not known")
    return operation(call, call.get("parent"), {name: True for name in call.body["serviceIds"]})


def operation(call, target, states):
    world = call.world
    begun = operations.Operation(world, "serviceusage", f"operations/acat.p2-{NUMBER}-{world.unique()}", target, "enable",
                                 call.id)

    def change():
        world.config["services"] = {**(world.config.get("services") or {}), **states}
        return {"@type": "type.googleapis.com/google.api.serviceusage.v1.EnableServiceResponse"}
    operations.begin(world, begun, change)
    return operations.shown(begun, call.document)


@answers("serviceusage.services.consumerQuotaMetrics.list")
def quota_metrics(call):
    """The configured quotas of TPUs, and the limit on creates a minute; the metrics' names are made up."""
    parent = call.get("parent")
    if not parent.endswith("/services/tpu.googleapis.com"):
        return {}
    metrics = {"tpu.googleapis.com/create_requests": [("1/min/{project}", "CreateNodePerMinutePerProject", 91, {})]}
    for entry in call.world.config.get("quotas", []):
        if "generation" not in entry:
            continue
        scope = "region" if "region" in entry else "zone"
        for spot in (True, False):
            if entry.get("capacity", "spot" if spot else "on-demand") == ("spot" if spot else "on-demand"):
                name = f"tpu.googleapis.com/tpu-{entry['generation']}{'-preemptible' if spot else ''}"
                limit = tpu_limits.quota_name(entry["generation"], spot, scope)
                metrics.setdefault(name, []).append((f"1/{{project}}/{{{scope}}}", limit, entry["limit"],
                                                     {scope: entry[scope]}))
    found = [shown_metric(parent, name, limits) for name, limits in sorted(metrics.items())]
    page, token = call.page(found)
    return {"metrics": page, **token}


def shown_metric(parent, name, limits):
    own = f"{parent}/consumerQuotaMetrics/{quote(name, safe='')}"
    return {"name": own, "metric": name, "displayName": name, "unit": "1", "consumerQuotaLimits": [
        {"name": f"{own}/limits/{limit}", "metric": name, "unit": unit, "quotaBuckets": [
            {"effectiveLimit": str(value), "defaultLimit": str(value), "dimensions": place}]}
        for unit, limit, value, place in limits]}


@answers("cloudresourcemanager.projects.get")
def get_project(call):
    project = call.get("name").split("/")[1]
    return {"name": f"projects/{NUMBER}", "projectId": project, "displayName": project, "state": "ACTIVE",
            "parent": "organizations/42", "createTime": stamp(call.world.base), "etag": "W/\"1\""}


@answers("cloudresourcemanager.projects.testIamPermissions")
def test_permissions(call):
    wanted = call.body.get("permissions", [])
    if not wanted or len(wanted) > 100:
        raise Refusal(400, f"permissions: from 1 to 100, not {len(wanted)}")
    wrong = [name for name in wanted if not re.fullmatch(r"[a-z]+\.[A-Za-z]+\.[A-Za-z]+(\.[A-Za-z]+)?", name)]
    if wrong:
        raise Refusal(400, f"Permission {wrong[0]} is not valid for this resource.")
    granted = [name for name in wanted if name not in call.world.config.get("denied_permissions", [])]
    return {"permissions": granted} if granted else {}


@answers("cloudresourcemanager.projects.search")
def search_projects(call):
    found = [{"name": f"projects/{NUMBER}", "projectId": project, "displayName": project, "state": "ACTIVE"}
             for project in call.world.projects]
    page, token = call.page(found)
    return {"projects": page, **token}


@answers("cloudresourcemanager.operations.get")
def get_operation(call):
    raise not_found("cloudresourcemanager", call.get("name"))
