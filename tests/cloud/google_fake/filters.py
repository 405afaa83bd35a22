"""The filter expressions of Compute Engine's and Filestore's lists, as far as tools write them: comparisons joined by AND
or by standing side by side, with brackets; =, !=, :, eq, ne; `labels.x=y`, `name=n`, `labels.x:*`."""

import re

from .refusal import Refusal

TOKEN = re.compile(r'\s*(?:(\()|(\))|(AND\b)|([\w.-]+)\s*(!=|=|:|\beq\b|\bne\b)\s*("[^"]*"|[^\s()="!:][^\s()]*))')


def compile_filter(text):
    """A predicate of bodies."""
    if not text:
        return lambda body: True
    tests, at, depth = [], 0, 0
    while at < len(text.rstrip()):
        match = TOKEN.match(text, at)
        if match is None:
            raise Refusal(400, f"Invalid value for field 'filter': '{text}'. Invalid list filter expression.")
        at = match.end()
        depth += bool(match.group(1)) - bool(match.group(2))
        if match.group(4):
            tests.append(comparison(match.group(4), match.group(5), match.group(6).strip('"')))
    if depth:
        raise Refusal(400, f"Invalid value for field 'filter': '{text}': brackets do not match.")
    return lambda body: all(test(body) for test in tests)


def comparison(field, operator, wanted):
    def value(body):
        first, _, rest = field.partition(".")
        inner = body.get(first)
        return inner.get(rest) if rest and isinstance(inner, dict) else inner

    def test(body):
        found = value(body)
        if operator == ":":
            return found is not None and (wanted == "*" or wanted in str(found))
        if operator == "eq" or operator == "ne":
            return (found is not None and re.fullmatch(wanted, str(found)) is not None) == (operator == "eq")
        return (str(found) == wanted) == (operator == "=")
    return test
