"""Google's discovery documents as PyPI's google-api-python-client carries them: which method a request is, and what in
it the method's schema does not allow."""

import importlib.util
import json
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qsl, unquote

from .values import value_faults

# What a path begins with, and whose it is. File and Service Usage share /v1/, so each is asked.
SERVICES = (("/compute/v1/", ("compute.v1",)), ("/storage/v1/", ("storage.v1",)),
            ("/upload/storage/v1/", ("storage.v1",)), ("/v2alpha1/", ("tpu.v2alpha1",)), ("/v2/", ("tpu.v2",)),
            ("/v3/", ("cloudresourcemanager.v3",)), ("/v1beta1/", ("serviceusage.v1beta1",)),
            ("/v1/", ("file.v1", "serviceusage.v1")))


# Compute Engine's lists take it (gcloud sends it with each), though the document of v1 has it for few of them.
PARTIAL = {"returnPartialSuccess": {"location": "query", "type": "boolean"}}


def documents_folder():
    package = importlib.util.find_spec("googleapiclient")
    if package is None:
        raise SystemExit("google-api-python-client is not installed: its discovery documents are what requests are "
                         "checked against (scripts/python-test.txt has its version)")
    return Path(package.submodule_search_locations[0]) / "discovery_cache" / "documents"


class Method:
    """One method of a service."""

    def __init__(self, document, description, upload=False):
        self.document = document
        self.description = description
        self.id = description["id"]
        self.verb = description["httpMethod"]
        self.upload = upload
        path = description["mediaUpload"]["protocols"]["simple"]["path"].lstrip("/") if upload else (
            document.prefix + description["path"])
        shape = path if upload else document.prefix + description.get("flatPath", description["path"])
        self.segments = shape.split("/")
        self.literals = sum("{" not in segment for segment in self.segments)
        self.path = path
        self.parameters = description.get("parameters", {})

    @property
    def schema(self):
        return self.description.get("request", {}).get("$ref")

    @property
    def response(self):
        return self.description.get("response", {}).get("$ref")

    def fits(self, segments):
        return len(segments) == len(self.segments) and all(
            _segment(pattern).fullmatch(given) for pattern, given in zip(self.segments, segments))

    @property
    @lru_cache(maxsize=None)
    def path_expression(self):
        def variable(match):
            plus, name = match.group(1), match.group(2)
            return f"(?P<{name}>{'.+' if plus else '[^/]+'})"
        pieces = re.split(r"(\{\+?\w+\})", self.path)
        return re.compile("".join(
            re.sub(r"\{(\+?)(\w+)\}", variable, piece) if piece.startswith("{") else re.escape(piece)
            for piece in pieces))


@lru_cache(maxsize=None)
def _segment(pattern):
    """`{nodesId}:stop`, `nodes`, `{project}`: a variable takes no colon, which begins a custom verb."""
    pieces = re.split(r"(\{\w+\})", pattern)
    custom = ":" in pattern
    return re.compile("".join(
        ("[^/:]+" if custom else "[^/]+?(?<!:)") if piece.startswith("{") else re.escape(piece) for piece in pieces))


class Document:
    def __init__(self, name):
        self.name = name
        self.service = name.split(".")[0]
        self.content = json.loads((documents_folder() / f"{name}.json").read_text())
        self.prefix = self.content.get("servicePath", "")
        self.schemas = self.content["schemas"]
        self.by_length = {}
        self._collect(self.content)
        for methods in self.by_length.values():
            methods.sort(key=lambda method: -method.literals)

    def _collect(self, resources):
        for description in resources.get("methods", {}).values():
            self._add(Method(self, description))
            if "mediaUpload" in description:
                self._add(Method(self, description, upload=True))
        for inner in resources.get("resources", {}).values():
            self._collect(inner)

    def _add(self, method):
        self.by_length.setdefault((method.verb, len(method.segments)), []).append(method)

    def find(self, verb, path):
        segments = path.lstrip("/").split("/")
        custom = ":" in segments[-1]
        for method in self.by_length.get((verb, len(segments)), ()):
            if (":" in method.segments[-1]) == custom and method.fits(segments):
                return method
        return None


@lru_cache(maxsize=None)
def document(name):
    return Document(name)


def find_method(verb, path):
    """The method, or None; and the service that the path belongs to ("" if none)."""
    for prefix, names in SERVICES:
        if path.startswith(prefix):
            for name in names:
                if (method := document(name).find(verb, path)) is not None:
                    return method, method.document.service
            return None, document(names[0]).service
    return None, ""


def _text(value):
    """A parameter's text as the value that its schema speaks of."""
    return {"true": True, "True": True, "false": False, "False": False}.get(value, value)


def check_request(method, path, query_text, body):
    """(parameters, faults): the path's and the query's values by name, repeated ones as lists."""
    faults = []
    match = method.path_expression.fullmatch(path.lstrip("/"))
    parameters = {name: unquote(value) for name, value in match.groupdict().items()} if match else {}
    for name, value in parameters.items():
        pattern = method.parameters.get(name, {}).get("pattern")
        if pattern and not re.fullmatch(pattern, value):
            faults.append({"field": name, "message": f"Invalid value '{value}'. Values must match the following "
                           f"regular expression: '{pattern}'"})
    common = method.document.content.get("parameters", {})
    if method.document.service == "compute" and method.id.endswith((".list", ".aggregatedList")):
        common = {**common, **PARTIAL}
    for name, value in parse_qsl(query_text, keep_blank_values=True):
        schema = method.parameters.get(name) or common.get(name)
        if schema is None or schema.get("location") != "query":
            faults.append({"field": name, "message": f'Invalid JSON payload received. Unknown name "{name}": Cannot '
                           "bind query parameter. Field could not be found in request message."})
            continue
        converted = _text(value) if schema["type"] == "boolean" else value
        if schema["type"] in ("integer", "number") and re.fullmatch(r"-?\d+", value):
            converted = int(value)
        if schema.get("repeated"):
            parameters.setdefault(name, []).append(converted)
        else:
            parameters[name] = converted
        faults += value_faults(method.document, {k: v for k, v in schema.items() if k != "pattern"}, converted, name,
                               method.id)
        if schema.get("pattern") and not re.fullmatch(schema["pattern"], value):
            faults.append({"field": name, "message": f"Invalid value for field '{name}': '{value}'. Must be a match "
                           f"of regex '{schema['pattern']}'"})
    for name, schema in method.parameters.items():
        if schema.get("required") and name not in parameters:
            faults.append({"field": name, "message": f"Required parameter: {name}"})
    return parameters, faults + body_faults(method, parameters, body)


def body_faults(method, parameters, body):
    if method.schema is None:
        return [] if body in (None, {}) else [{"field": "", "message": f"{method.id} takes no body"}]
    if body is None or isinstance(body, bytes):  # bytes: an upload
        return []
    if not isinstance(body, dict):
        return [{"field": "", "message": "Invalid JSON payload received. An object is expected"}]
    if method.id == "storage.buckets.patch" and isinstance(body.get("labels"), dict):  # null takes a label away
        body = {**body, "labels": {name: value for name, value in body["labels"].items() if value is not None}}
    partial = method.verb == "PATCH" or "updateMask" in parameters
    return value_faults(method.document, {"$ref": method.schema}, body, "", method.id, request=True, partial=partial)


def response_faults(method, body):
    """What in an answer of ours Google's schema does not know."""
    if method.response is None or body is None:
        return []
    return value_faults(method.document, {"$ref": method.response}, body, "", method.id)
