"""What Google has to offer: TPU types with their hosts and list prices, zones, machine types. The figures are rounded
list prices of us-central1 (2026) in dollars; they are for tests to compare with, not a bill."""

import re

# generation: name prefix, name counts cores, chips a host, $ a chip-hour on demand and spot, type in AcceleratorConfig
GENERATIONS = {
    "v2": ("v2-", True, 4, 1.13, 0.34, "V2"), "v3": ("v3-", True, 4, 2.00, 0.51, "V3"),
    "v4": ("v4-", True, 4, 3.22, 0.92, "V4"), "v5e": ("v5litepod-", False, 4, 1.20, 0.245, "V5LITE_POD"),
    "v5p": ("v5p-", True, 4, 4.20, 0.84, "V5P"), "v6e": ("v6e-", False, 4, 2.70, 0.54, "V6E"),
}
RUNTIME_VERSIONS = ("tpu-ubuntu2204-base", "v2-alpha-tpuv4", "v2-alpha-tpuv5", "v2-alpha-tpuv5-lite", "v2-alpha-tpuv6e")
TYPES = {"v2": (8, 32, 128), "v3": (8, 32, 128), "v4": (8, 16, 32, 64, 128), "v5e": (1, 4, 8, 16, 32, 64, 128, 256),
         "v5p": (8, 16, 32, 64, 128), "v6e": (1, 4, 8, 16, 32, 64, 128, 256)}
ZONES = {
    "us-central1-a": ("v2", "v5e", "v5p"), "us-central1-b": ("v2", "v3", "v6e"), "us-central1-c": ("v2", "v5e"),
    "us-central2-b": ("v4",), "us-east1-d": ("v6e",), "us-east5-a": ("v5p",), "us-east5-b": ("v6e",),
    "europe-west4-a": ("v2", "v3", "v6e"), "europe-west4-b": ("v5e", "v5p"), "asia-northeast1-b": ("v6e",),
}
DISK_MONTH = {"pd-standard": 0.04, "pd-balanced": 0.10, "pd-ssd": 0.17, "hyperdisk-balanced": 0.08, "hyperdisk-ml": 0.08}
FILESTORE_MONTH = {"BASIC_HDD": 0.16, "STANDARD": 0.16, "BASIC_SSD": 0.30, "PREMIUM": 0.30, "ZONAL": 0.25,
                   "REGIONAL": 0.45, "ENTERPRISE": 0.45}
HOURS_A_MONTH = 730
VCPU_HOUR = {"e2": 0.0335, "n1": 0.0475, "n2": 0.0486, "n2d": 0.0422, "c3": 0.0522, "ct6e": 0.06, "ct5p": 0.06,
             "ct5lp": 0.06, "tpu7x": 0.06}


class TpuType:
    def __init__(self, name):
        self.name = name
        for generation, (prefix, cores, chips_a_host, on_demand, spot, config) in GENERATIONS.items():
            match = re.fullmatch(re.escape(prefix) + r"([1-9]\d*)", name)
            if match:
                self.generation, self.config, self.dollars, self.spot_dollars = generation, config, on_demand, spot
                self.count = int(match.group(1))
                self.chips = self.count // 2 if cores else self.count
                one_host = not cores and self.chips in (1, 4, 8)
                self.hosts = 1 if one_host else max(1, self.chips // chips_a_host)
                return
        raise KeyError(name)

    def topology(self):
        """The usual topology of so many chips: two dimensions, three of v4 and v5p."""
        sides = [1] * (3 if self.generation in ("v4", "v5p") else 2)
        left, at = self.chips, len(sides) - 1
        while left > 1:
            sides[at] *= 2
            left //= 2
            at = at - 1 if at else len(sides) - 1
        return "x".join(str(side) for side in sorted(sides))

    def hourly(self, spot):
        return self.chips * (self.spot_dollars if spot else self.dollars)


def tpu_type(name):
    """None if no generation has it."""
    try:
        return TpuType(name)
    except KeyError:
        return None


def type_of_config(config):
    """acceleratorConfig {type, topology} as a type's name."""
    chips = 1
    for side in config["topology"].split("x"):
        chips *= int(side)
    for generation, (prefix, cores, _, _, _, name) in GENERATIONS.items():
        if name == config["type"]:
            return f"{prefix}{2 * chips if cores else chips}"
    return ""


def types_of(generations):
    return [f"{GENERATIONS[generation][0]}{count}" for generation in generations for count in TYPES[generation]]


def machine(name):
    """(vCPUs, MiB) of a machine type, or None: family-class-N."""
    match = re.fullmatch(r"(e2|n1|n2|n2d|c3)-(standard|highmem|highcpu)-(\d+)", name)
    if match:
        cpus = int(match.group(3))
        gib = {"standard": 4, "highmem": 8, "highcpu": 1}[match.group(2)]
        return cpus, cpus * gib * 1024
    if name in ("e2-micro", "e2-small", "e2-medium"):
        return 2, {"e2-micro": 1024, "e2-small": 2048, "e2-medium": 4096}[name]
    match = re.fullmatch(r"(ct6e|ct5p|tpu7x)-(standard|hightpu)-(\d)t", name)
    return (int(match.group(3)) * 45, int(match.group(3)) * 180 * 1024) if match else None


def machine_hourly(name, spot):
    found = machine(name)
    if found is None:
        return 0.0
    return found[0] * VCPU_HOUR.get(name.split("-")[0], 0.05) * (0.4 if spot else 1.0)


def region_of(zone):
    return zone.rsplit("-", 1)[0]
