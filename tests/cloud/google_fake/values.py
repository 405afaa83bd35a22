"""A JSON value against a schema of a discovery document."""

import re

KINDS = {"string": str, "boolean": bool, "object": dict, "array": list}
FORMATS = {
    "google-duration": r"-?\d+(\.\d{1,9})?s",
    "google-datetime": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)",
    "date-time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)",
    "int64": r"-?\d+", "uint64": r"\d+", "byte": r"[A-Za-z0-9+/_-]*=*",
}


def output_only(name, schema):
    """`kind` is output, too, but all clients send back what they have read, and Google takes it."""
    return name != "kind" and (schema.get("readOnly") is True or
                               re.match(r"\W*output[ -]only", schema.get("description", ""), re.I) is not None)


def required(schema, method_id):
    """Compute Engine says for which methods; the others begin their description so."""
    wanted = schema.get("annotations", {}).get("required")
    if wanted is not None:
        return method_id in wanted
    return schema.get("description", "").startswith("Required. ")


def value_faults(document, schema, value, place, method_id, request=False, partial=False):
    """[{field, message}]: unknown fields, wrong types and enum values; in requests also output-only fields and
    required ones that are missing (unless `partial`, a PATCH)."""
    if "$ref" in schema:
        schema = document.schemas[schema["$ref"]]
    kind = schema.get("type")
    fault = _scalar_fault(schema, kind, value, place)
    if fault:
        return [fault]
    faults = []
    if kind == "array":
        for index, item in enumerate(value):
            faults += value_faults(document, schema["items"], item, f"{place}[{index}]", method_id, request, partial)
    elif kind == "object":
        faults += _object_faults(document, schema, value, place, method_id, request, partial)
    return faults


def _object_faults(document, schema, value, place, method_id, request, partial):
    faults = []
    properties = schema.get("properties", {})
    other = schema.get("additionalProperties")
    for name, inner in value.items():
        where = f"{place}.{name}" if place else name
        if name in properties:
            if request and output_only(name, properties[name]):
                faults.append({"field": where, "message": f"'{where}' is an output only field: a request cannot set it"})
            else:
                faults += value_faults(document, properties[name], inner, where, method_id, request, partial)
        elif other is not None:
            faults += value_faults(document, other, inner, where, method_id, request, partial)
        else:
            at = f" at '{place}'" if place else ""
            faults.append({"field": place, "message": f'Invalid JSON payload received. Unknown name "{name}"{at}: '
                           "Cannot find field."})
    if request and not partial:
        for name, inner in properties.items():
            if name not in value and required(inner, method_id):
                where = f"{place}.{name}" if place else name
                faults.append({"field": where, "message": f"Required field '{where}' not specified"})
    return faults


def _scalar_fault(schema, kind, value, place):
    if kind == "any" or kind is None:
        return None
    expected = f'Invalid value at \'{place}\' ({schema.get("format", kind)}), {value!r}'
    if kind in ("integer", "number"):
        whole = isinstance(value, int) or isinstance(value, float) and (kind == "number" or value.is_integer())
        return {"field": place, "message": expected} if isinstance(value, bool) or not whole else None
    text = schema.get("format")
    if kind == "string" and text in ("int64", "uint64") and isinstance(value, int) and not isinstance(value, bool):
        return None
    if not isinstance(value, KINDS[kind]):
        return {"field": place, "message": expected}
    if kind == "string":
        if "enum" in schema and value not in schema["enum"]:
            return {"field": place, "message": f"{expected}: it is one of {', '.join(schema['enum'])}"}
        if text in FORMATS and not re.fullmatch(FORMATS[text], value):
            return {"field": place, "message": expected}
        if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
            return {"field": place, "message": f"Invalid value for field '{place}': '{value}'. Must be a match of "
                    f"regex '{schema['pattern']}'"}
    return None
