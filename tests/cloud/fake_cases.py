"""What the tests of the fake share: one fake for all, google-api-python-client pointed at it, and short ways to ask."""

import atexit
import json
import re
import sys
import unittest

from google_fake_support import GoogleFake

try:
    import httplib2
    from googleapiclient import discovery, errors
except ImportError:
    print("google-api-python-client is not installed (scripts/python-test.txt)")
    sys.exit(77)

ZONE, OTHER = "us-central1-b", "us-east5-b"
HERE = f"projects/p/locations/{ZONE}"
PLACE = {"project": "p", "zone": ZONE}
NODE = {"acceleratorType": "v6e-16", "runtimeVersion": "v2-alpha-tpuv6e"}
WORLD = {"projects": ["p", "p2"], "zones": {ZONE: {}, OTHER: {}}}


class Redirected(httplib2.Http):
    """Sends what is meant for Google's hosts to the fake."""

    def request(self, uri, *arguments, **options):  # pylint: disable=arguments-differ
        options.pop("connection_type", None)
        return super().request(re.sub(r"^https://[^/]+", FAKE.url, uri), *arguments, **options)


def api(name, version):
    if (name, version) not in APIS:
        APIS[name, version] = discovery.build(name, version, http=Redirected(), static_discovery=True)
    return APIS[name, version]


APIS = {}
FAKE = GoogleFake(WORLD)  # one process for all: it starts in a third of a second


@atexit.register
def stop():
    for service in APIS.values():
        service.close()
    FAKE.stop()


class FakeTest(unittest.TestCase):
    config = {}

    def setUp(self):
        FAKE.reset({**WORLD, **self.config})
        self.first = FAKE.last_number()

    def log(self):
        return FAKE.log(after=self.first)

    @property
    def nodes(self):
        return api("tpu", "v2").projects().locations().nodes()

    @property
    def queue(self):
        return api("tpu", "v2").projects().locations().queuedResources()

    @property
    def compute(self):
        return api("compute", "v1")

    def refused(self, request, code, text):
        with self.assertRaises(errors.HttpError) as caught:
            request.execute()
        self.assertEqual((caught.exception.status_code, True), (code, text in caught.exception.content.decode()),
                         caught.exception.content)
        return json.loads(caught.exception.content)["error"]

    def finish(self, operation):
        """A google.longrunning operation, polled to its end."""
        get = api("tpu", "v2").projects().locations().operations().get
        for _ in range(10):
            operation = get(name=operation["name"]).execute()
            if operation.get("done"):
                return operation
        raise AssertionError(f"no end of {operation}")

    def wait(self, operation):
        """An operation of Compute Engine, waited for."""
        call = {"project": "p", "operation": operation["name"]}
        if "zone" in operation:
            return self.compute.zoneOperations().wait(zone=operation["zone"].rsplit("/", 1)[1], **call).execute()
        if "region" in operation:
            return self.compute.regionOperations().wait(region=operation["region"].rsplit("/", 1)[1], **call).execute()
        return self.compute.globalOperations().wait(**call).execute()

    def insert(self, collection, body, **place):
        """The operation at its end."""
        return self.wait(getattr(self.compute, collection)().insert(body=body, **(place or {"project": "p"})).execute())

    def node(self, name="n", **fields):
        self.finish(self.nodes.create(parent=HERE, nodeId=name, body={**NODE, **fields}).execute())
        return self.nodes.get(name=f"{HERE}/nodes/{name}").execute()


def queued(name, **fields):
    return {"tpu": {"nodeSpec": [{"parent": HERE, "nodeId": name, "node": NODE}]}, **fields}


INSTANCE = {"name": "i", "machineType": f"zones/{ZONE}/machineTypes/e2-standard-8",
            "disks": [{"boot": True, "autoDelete": True,
                       "initializeParams": {"sourceImage": "projects/debian-cloud/global/images/family/debian-12"}}],
            "networkInterfaces": [{"network": "global/networks/default"}]}
