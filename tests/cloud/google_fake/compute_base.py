"""What Compute Engine's collections share: names and links, insert, get, list, delete, what uses what."""

import re

from . import catalog, compute_operations
from .calls import ANSWERS
from .compute_operations import ROOT
from .filters import compile_filter
from .refusal import Refusal, already_exists, not_found
from .world import stamp

SCOPES = {"zones": "zone", "regions": "region"}


class Collection:
    """One collection. `title` of a resource in `kind`; `scope` zones, regions or global; `begin_state` and `state` are
    its status while it is made and after (None: it has none). Hooks: fill(call, thing) completes and checks a new one,
    done(call, thing) is the end of its creation, may_go(call, thing) refuses a delete, gone(call, thing) follows it."""

    def __init__(self, name, scope, title, state=None, begin_state=None, end_state="DELETING"):
        self.name, self.scope, self.title = name, scope, title
        self.kind = f"compute.{name}"
        self.state, self.begin_state, self.end_state = state, begin_state, end_state
        self.fill = self.done = self.may_go = self.gone = None
        for verb in ("insert", "get", "list", "delete", "aggregatedList"):
            ANSWERS[f"compute.{name}.{verb}"] = getattr(self, verb)
        COLLECTIONS[name] = self

    def parent(self, call):
        base = f"projects/{call.get('project')}/"
        if self.scope == "global":
            return base + "global"
        place = call.get(SCOPES[self.scope])
        check_place(call, self.scope, place)
        return f"{base}{self.scope}/{place}"

    def name_of(self, call):
        identity = next(value for key, value in call.parameters.items()
                        if key not in ("project", "zone", "region", "requestId") and key in self.method_keys())
        return f"{self.parent(call)}/{self.name}/{identity}"

    def method_keys(self):
        singular = {"resourcePolicies": "resourcePolicy", "addresses": "address"}.get(self.name, self.name.rstrip("s"))
        return (singular, "resource")

    def find(self, call):
        name = self.name_of(call)
        call.world.look(name)
        thing = call.world.things.get(name)
        if thing is None:
            raise not_found("compute", name)
        return thing

    def insert(self, call):
        return call.again(lambda: self.begin_insert(call))

    def begin_insert(self, call):
        parent = self.parent(call)
        name = f"{parent}/{self.name}/{call.body['name']}"
        if name in call.world.things:
            raise already_exists("compute", name)
        thing = self.make(call, name, call.body)
        return compute_operations.begin(call, name, "insert", lambda: self.made(call, thing),
                                        lambda: call.world.remove(name, "create failed"))

    def make(self, call, name, body):
        """The thing in its first state; a refusal leaves nothing."""
        pieces = name.split("/")
        full = {**body, "kind": f"compute#{self.title}", "id": call.world.number(), "selfLink": ROOT + name,
                "creationTimestamp": stamp(call.world.now())}
        if self.scope != "global":
            full[SCOPES[self.scope]] = ROOT + "/".join(pieces[:4])
        if self.begin_state:
            full["status"] = self.begin_state
        thing = call.world.add(self.kind, name, full)
        try:
            if "labels" in full:
                full["labelFingerprint"] = fingerprint(call.world)
            if self.fill:
                self.fill(call, thing)
        except Refusal:
            del call.world.things[name]
            raise
        return thing

    def made(self, call, thing):
        if self.done:
            self.done(call, thing)
        if self.state:
            call.world.settle()
            thing.body["status"] = self.state
        thing.private["ready"] = True

    def get(self, call):
        return self.show(call, self.find(call))

    def show(self, call, thing):
        return thing.body

    def list(self, call):
        under = f"{self.parent(call)}/{self.name}/"
        things = call.world.of_kind(self.kind, under)
        for thing in things:
            call.world.look(thing.name)
        wanted = compile_filter(call.get("filter"))
        items = [body for thing in things if thing.name in call.world.things and wanted(body := self.show(call, thing))]
        page, token = call.page(items, 500)
        answer = {"kind": f"compute#{self.title}List", "id": under.rstrip("/"), "selfLink": ROOT + under.rstrip("/"),
                  **token}
        return {**answer, "items": page} if page else answer

    def aggregatedList(self, call):  # noqa: N802 (the method's name)
        world = call.world
        under = f"projects/{call.get('project')}/"
        wanted = compile_filter(call.get("filter"))
        found = []
        for thing in world.of_kind(self.kind, under):
            world.look(thing.name)
            if thing.name in world.things and reachable(world, thing.name) and wanted(self.show(call, thing)):
                found.append(thing)
        page, token = call.page(found, 500)
        items = {}
        for zone in world.zones if self.scope == "zones" else world.regions() if self.scope == "regions" else ["global"]:
            scope = "global" if zone == "global" else f"{self.scope}/{zone}"
            inside = [self.show(call, thing) for thing in page if f"/{scope}/" in thing.name]
            if self.scope == "zones" and not world.reachable(zone):
                items[scope] = {"warning": warning("UNREACHABLE", f"Unable to reach scope '{scope}'.", scope)}
            elif inside:
                items[scope] = {self.name: inside}
            else:
                items[scope] = {"warning": warning("NO_RESULTS_ON_PAGE", f"There are no results for scope '{scope}' on "
                                                   "this page.", scope)}
        answer = {"kind": f"compute#{self.title}AggregatedList", "id": f"{under}aggregated/{self.name}", "items": items,
                  **token}
        if self.scope == "zones":
            missing = [f"zones/{zone}" for zone in world.zones if not world.reachable(zone)]
            if missing:
                answer["unreachables"] = missing
                answer["warning"] = warning("UNREACHABLE", f"Some scopes cannot be reached: {', '.join(missing)}",
                                            missing[0])
        return answer

    def delete(self, call):
        def begin():
            thing = self.find(call)
            check_ready(thing)
            users = users_of(call.world, thing)
            if users:
                raise in_use(self.title, thing.name, users[0])
            if self.may_go:
                self.may_go(call, thing)
            return self.begin_delete(call, thing)
        return call.again(begin)

    def begin_delete(self, call, thing):
        before = thing.body.get("status")
        thing.private["leaving"] = True
        if before and self.end_state:
            thing.body["status"] = self.end_state

        def gone():
            if self.gone:
                self.gone(call, thing)
            call.world.remove(thing.name, "deleted")

        def stays():
            thing.private["leaving"] = False
            if before:
                thing.body["status"] = before
        return compute_operations.begin(call, thing.name, "delete", gone, stays)


COLLECTIONS = {}


def fingerprint(world):
    return f"f{world.unique():010d}="


def check_fingerprint(thing, field, given):
    """412 unless the caller has read the newest."""
    if given is None or given != thing.body.get(field):
        raise Refusal(412, "Supplied fingerprint does not match current metadata fingerprint.")


def warning(code, message, scope):
    return {"code": code, "message": message, "data": [{"key": "scope", "value": scope}]}


def reachable(world, name):
    pieces = name.split("/")
    return pieces[2] != "zones" or world.reachable(pieces[3])


def check_place(call, scope, place):
    known = call.world.zones if scope == "zones" else call.world.regions()
    if place not in known:
        raise Refusal(400, f"Invalid value for field '{SCOPES[scope]}': '{place}'. Unknown {SCOPES[scope]}.")
    if scope == "zones" and not call.world.reachable(place):
        raise Refusal(503, f"The zone {place} cannot be reached now.")


def path_of(link):
    """A link, or a path from projects/ on, as the latter; "" for other text."""
    match = re.search(r"(?:^|/v1/)(projects/.+)$", link)
    return match.group(1) if match else ""


def resolve(call, link, field):
    """The name that a link means: full, from projects/ on, or from the scope on (global/…, zones/…, regions/…). The
    resource must exist and be ready."""
    name = path_of(link) or f"projects/{call.get('project')}/{link}"
    thing = call.world.things.get(name)
    if thing is None:
        what = name.split("/")[-2].rstrip("s") if "/" in link else "resource"
        raise Refusal(400, f"Invalid value for field '{field}': '{link}'. The referenced {what} resource cannot be found.")
    check_ready(thing)
    return thing


def check_ready(thing):
    """What is still being made or is going away can be neither used nor deleted."""
    if not thing.private.get("ready") or thing.private.get("leaving"):
        raise Refusal(400, f"The resource '{thing.name}' is not ready", reason="resourceNotReady")


def in_use(title, name, user):
    return Refusal(400, f"The {title} resource '{name}' is already being used by '{user}'",
                   reason="resourceInUseByAnotherResource")


def strings(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("selfLink", "users", "metadata", "labels", "description"):
                yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)
    elif isinstance(value, str):
        yield value


def users_of(world, thing):
    """Names of the things whose body points to this one."""
    users = []
    for other in world.things.values():
        if other is thing or other.private.get("leaving"):
            continue
        pointed = {path_of(text) for text in strings(other.body)}
        if thing.name in pointed or other.kind == "tpu.nodes" and tpu_network(other) == thing.name:
            users.append(other.name)
    return users


def tpu_network(node):
    network = node.body.get("networkConfig", {}).get("network", "")
    return network if "/" in network else f"projects/{node.name.split('/')[1]}/global/networks/{network}"


def region_of(thing):
    return catalog.region_of(thing.name.split("/")[3])


def regional_quota(call, region, metric, more, used):
    """QUOTA_EXCEEDED where the configuration's {"metric", "region", "limit"} has no room for `more`."""
    for entry in call.world.config.get("quotas", []):
        if entry.get("metric") == metric and entry.get("region") == region and used + more > entry["limit"]:
            return entry["limit"]
    return None
