"""What a run leaves: one JSON file a step, and gpu.json with all of it, written again after each step."""

import json
import os


def write_whole(path, text):
    """The file appears complete or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text)
    os.replace(part, path)


def sides_of(result):
    """{side: {"step_ms", "xla_to_this"}} of what `sluice bench step` printed."""
    return {name: side for name, side in result.items() if isinstance(side, dict) and "xla_to_this" in side}


def name_of_side(command):
    """"against" is JAX's program; a command of torch_step.py is PyTorch, eager or compiled."""
    if command == "against":
        return "jax"
    if "torch_step" not in command:
        return command
    return "torch.compile" if "--compile" in command else "eager"


def speed_of(result):
    """How many times as fast as each side Sluice is, and the memory of each."""
    ratios = {name_of_side(name): round(1 / side["xla_to_this"], 3) for name, side in sides_of(result).items()}
    memory = {name_of_side(name): side["program_bytes"] for name, side in result.items()
              if isinstance(side, dict) and side.get("program_bytes")}
    memory = {"sluice" if name == "xla" else name: size for name, size in memory.items()}
    return {"step_ms": result["xla"]["step_ms"], "host_ms": result["xla"]["host_ms"],
            "captured_host_ms": result.get("captured", {}).get("host_ms"), "times_as_fast": ratios, "bytes": memory}


class Results:
    def __init__(self, folder, head):
        self.folder = folder
        self.all = {**head, "seconds": 0, "speed": {}, "steps": {}}
        for old in [*folder.glob("*.json"), *folder.glob("*.log")]:
            old.unlink()

    def add(self, name, outcome, seconds, said, result=None):
        """outcome: ok, failed, or left out."""
        entry = {"outcome": outcome, "seconds": round(seconds, 1), "said": said}
        if result is not None:
            entry["result"] = result
        if name.startswith("bench-") and isinstance(result, dict) and "xla" in result:
            self.all["speed"][name[len("bench-"):]] = speed_of(result)
        self.all["steps"][name] = entry
        write_whole(self.folder / f"{name}.json", json.dumps(entry, indent=1) + "\n")
        write_whole(self.folder / "gpu.json", json.dumps(self.all, indent=1) + "\n")

    def finish(self, seconds):
        self.all["seconds"] = round(seconds, 1)
        write_whole(self.folder / "gpu.json", json.dumps(self.all, indent=1) + "\n")

    def failed(self):
        return [name for name, entry in self.all["steps"].items() if entry["outcome"] == "failed"]
