"""Running the kit's programs, each under a limit of its own, in a process group that ends with it."""

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass


@dataclass
class Done:
    status: int  # as the shell has it; negative: killed by that signal
    timed_out: bool
    seconds: float
    text: str  # standard output
    log: str  # standard error

    def said(self):
        """The last line that says something, of standard error if it has one."""
        lines = [line.strip() for line in (self.log or self.text).splitlines() if line.strip()]
        return lines[-1][:300] if lines else ""

    def fault(self):
        """What is wrong with it in words; "" if nothing is."""
        if self.timed_out:
            return f"stopped after its {self.seconds:.0f} s"
        if self.status < 0:
            name = signal.Signals(-self.status).name
            memory = "; is the machine's memory full?" if name == "SIGKILL" else ""
            return f"killed by {name}{memory} {self.said()}".strip()
        return f"status {self.status}: {self.said()}" if self.status else ""

    def json(self):
        """Its standard output as JSON, or None."""
        try:
            return json.loads(self.text)
        except json.JSONDecodeError:
            return None


class Running:
    """A program that was started: `name`.out and `name`.log in `folder` hold what it writes."""

    def __init__(self, name, command, folder, environment):
        self.begin = time.monotonic()
        self.out, self.err = folder / f"{name}.out", folder / f"{name}.log"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                            env=environment, start_new_session=True)

    def kill(self):
        """Ends its whole group: programs that it started, too."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def wait(self, limit):
        timed_out = False
        try:
            self.process.wait(timeout=max(1, limit))
        except subprocess.TimeoutExpired:
            timed_out = True
        self.kill()
        seconds = time.monotonic() - self.begin
        text, log = (path.read_text(errors="replace") for path in (self.out, self.err))
        self.out.unlink()
        return Done(self.process.returncode, timed_out, seconds, text, log)


def run(name, command, limit, folder, environment):
    running = Running(name, command, folder, environment)
    try:
        return running.wait(limit)
    except BaseException:  # Ctrl-C: nothing stays behind
        running.kill()
        raise
