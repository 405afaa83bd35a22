"""Answers spoilt on purpose. An entry of the configuration's "faults":
  which request: "request": n (counted from 1 as in the log), or any of "method" (a regular expression for the method
    id), "http" (POST …), "path" (a regular expression), of which "skip": n are let through and "times": n (1) spoilt;
    "each": true spoils the first request of every method and path
  what: "kind": "status" with "code" (429, 503, …), "retry_after", "message"; "reset" (the connection is reset before the
    request is handled); "lost" (handled, then closed without an answer); "slow" with "seconds" (handled, answered late);
    "hold" (handled, never answered: the client waits till it is killed; "handled": false holds before handling)."""

import re

KINDS = ("status", "reset", "lost", "slow", "hold")


class Faults:
    def __init__(self, entries):
        self.entries = []
        self.add(entries)

    def add(self, entries):
        for entry in entries:
            if entry.get("kind") not in KINDS:
                raise ValueError(f"fault {entry}: kind is one of {', '.join(KINDS)}")
            self.entries.append({"used": 0, "seen": 0, "met": set(), **entry})

    def clear(self):
        self.entries = []

    def of(self, number, verb, path, method_id):
        """The first entry that spoils this request, or None."""
        for entry in self.entries:
            if self._fits(entry, number, verb, path, method_id):
                return entry
        return None

    @staticmethod
    def _fits(entry, number, verb, path, method_id):
        if "request" in entry:
            return entry["request"] == number
        if not (re.search(entry.get("method", ""), method_id) and re.search(entry.get("path", ""), path) and
                entry.get("http", verb) == verb):
            return False
        if entry.get("each"):
            if (verb, path) in entry["met"]:
                return False
            entry["met"].add((verb, path))
            return True
        entry["seen"] += 1
        if entry["seen"] <= entry.get("skip", 0) or entry["used"] >= entry.get("times", 1):
            return False
        entry["used"] += 1
        return True
