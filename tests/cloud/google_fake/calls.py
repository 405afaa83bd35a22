"""A call that has passed the schema, and the functions that answer calls, by method id."""

import copy

from . import catalog
from .refusal import Refusal
from .world import valid_request_id

ANSWERS = {}


def answers(*method_ids):
    """The decorated function(call) returns the answer's body, or raises Refusal."""
    def register(function):
        for method_id in method_ids:
            ANSWERS[method_id] = function
        return function
    return register


class Call:
    def __init__(self, world, method, parameters, body, raw=b"", headers=None):
        self.world, self.method, self.parameters = world, method, parameters
        self.body = copy.deepcopy(body) if isinstance(body, dict) else {}
        self.raw = raw
        self.headers = headers or {}
        self.id = method.id
        self.service = method.document.service
        self.document = method.document
        self.answer_status, self.answer_headers = None, {}

    def get(self, name, default=None):
        return self.parameters.get(name, default)

    def again(self, make):
        """make() once for a requestId: a repeated request gets the first one's operation."""
        identity = self.get("requestId")
        if identity is None:
            return make()
        if not valid_request_id(identity):
            raise Refusal(400, f"Invalid value for field 'requestId': '{identity}'. Must be a valid UUID")
        key = (self.id, identity)
        if key not in self.world.requests:
            self.world.requests[key] = make()
        return self.world.requests[key]

    def page(self, items, default=100):
        """(the page, {"nextPageToken"} or {}). `default`: items where the request names no number."""
        size = self.get("pageSize") or self.get("maxResults") or self.world.config.get("page_size", default)
        token = str(self.get("pageToken") or 0)
        if not token.isdigit():
            raise Refusal(400, f"Invalid value for field 'pageToken': '{token}'")
        start = int(token)
        more = start + size < len(items)
        return items[start:start + size], {"nextPageToken": str(start + size)} if more else {}


def split_location(name):
    """projects/P/locations/Z[/…] -> (P, Z)."""
    pieces = name.split("/")
    return pieces[1], pieces[3]


def check_location(call, zone, known):
    if zone not in known:
        raise Refusal(403, f"Location {zone} is not found or access is unauthorized.")
    if not call.world.reachable(zone):
        raise Refusal(503, f"The service is currently unavailable in {zone}.")


def known_locations(world):
    return set(world.zones) | {catalog.region_of(zone) for zone in world.zones}
