"""mlflow_oracle.py PROGRAM: `sluice train --mlflow` against MLflow's own server: its REST handlers over its SQLite store.

The server comes late, is killed and comes back; the training is killed and goes on: whatever metrics.csv has, MLflow has,
each row once.
"""
import csv
import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

try:
    import mlflow
    import mlflow.store.tracking.sqlalchemy_store  # noqa: F401
except ImportError as error:
    print(f"skipped: {error}; scripts/setup installs the packages of scripts/python-test.txt")
    sys.exit(77)

SERVER = """
import os, sys
os.environ["_MLFLOW_SERVER_FILE_STORE"] = "sqlite:///" + sys.argv[1] + "/mlflow.db"
os.environ["_MLFLOW_SERVER_ARTIFACT_ROOT"] = sys.argv[1] + "/artifacts"
from mlflow.server import app
from werkzeug.serving import make_server
make_server("127.0.0.1", int(sys.argv[2]), app, threaded=True).serve_forever()
"""
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ.pop("MLFLOW_TRACKING_URI", None)


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_until(condition, what, seconds=120):
    end = time.time() + seconds
    while not condition():
        check(time.time() < end, f"waited {seconds} s for {what}")
        time.sleep(0.02)


class Server:
    """MLflow's server, which can be killed and comes back with what it has."""

    def __init__(self, folder):
        self.folder, self.port, self.process = folder, free_port(), None
        self.uri = f"http://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen([sys.executable, "-c", SERVER, self.folder, str(self.port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def answers():  # the first request makes the tables, and takes seconds
            check(self.process.poll() is None, "the server has ended")
            try:
                urllib.request.urlopen(f"{self.uri}/api/2.0/mlflow/experiments/get-by-name?experiment_name=Default").read()
                return True
            except OSError:
                return False
        wait_until(answers, "the server")
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def run_of(self, logdir):
        with open(os.path.join(logdir, "mlflow.json")) as file:
            place = json.load(file)
        client = mlflow.MlflowClient(self.uri)
        return client, client.get_run(place["run_id"])


class Training:
    def __init__(self, program, logdir, *flags, env=None):
        self.program, self.logdir = program, logdir
        self.process = subprocess.Popen(
            [program, "train", "--device", "cpu", "--model", "mlp", "--classes", "3", "--fake-data", "--train-size", "320",
             "--test-size", "40", "--image-size", "8", "--batch-size", "16", "--log-steps", "1", "--logdir", logdir, *flags],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})

    def end(self, status=0):
        said = self.process.communicate()[1]
        check(self.process.returncode == status, f"exit status {self.process.returncode}: {said}")
        return said

    def interrupt(self):
        """Ctrl-C, and what did not fit into the time for the end."""
        self.process.send_signal(signal.SIGINT)
        said = self.end(130)
        sent = subprocess.run([self.program, "mlflow", self.logdir], capture_output=True, text=True)
        check(sent.returncode == 0, sent)
        return said

    def rows(self):
        try:
            with open(os.path.join(self.logdir, "metrics.csv")) as file:
                return list(csv.DictReader(file))
        except FileNotFoundError:
            return []


def table_of(rows):
    """(name in MLflow, step) → value, of the cells of metrics.csv."""
    cells = {}
    for row in rows:
        for column, text in row.items():
            if text and column not in ("time", "split", "epoch", "step"):
                cells.setdefault((f"{row['split']}/{column}", int(row["step"])), []).append(float(text))
    return cells


def history_of(client, run):
    points = {}
    for name in run.data.metrics:
        for point in client.get_metric_history(run.info.run_id, name):
            points.setdefault((name, point.step), []).append(point.value)
    return points


def same(server, training, what, exactly=True):
    client, run = server.run_of(training.logdir)
    table, points = table_of(training.rows()), history_of(client, run)
    check(len(table) > 50, f"{what}: only {len(table)} values")
    shares = {key for key in points if key[0].startswith("epoch/")}
    check({name for name, _ in shares} == {"epoch/input_share", "epoch/trace_share", "epoch/device_share"}, f"{what}: {shares}")
    missing = [key for key in table if key not in points]
    check(not missing, f"{what}: MLflow lacks {len(missing)} of {len(table)}, such as {missing[:3]}")
    for key, values in table.items():
        got = points[key]
        check(sorted(values) == sorted(got) if exactly else set(values) <= set(got), f"{what}: {key}: {values}, {got}")
    if exactly:
        check(set(points) - shares == set(table), f"{what}: more points than rows")
    return client, run


def with_a_server(program, work):
    server = Server(work).start()
    training = Training(program, os.path.join(work, "plain"), "--mlflow", server.uri, "--mlflow-experiment", "digits & more",
                        "--epochs", "2", "--flip")
    training.process.communicate()
    check(training.process.returncode == 2, "--flip with fake data is wrong usage")
    training = Training(program, os.path.join(work, "plain"), "--mlflow", "--mlflow-experiment", "digits & more", "--epochs", "2",
                        env={"MLFLOW_TRACKING_URI": server.uri})
    said = training.end()
    client, run = same(server, training, "a server that is there")
    check(f"{server.uri}/#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}" in said, said)
    check(client.get_experiment(run.info.experiment_id).name == "digits & more", "the experiment's name")
    check(run.info.run_name == "plain" and run.info.status == "FINISHED" and run.info.end_time >= run.info.start_time, run.info)
    check(abs(run.info.start_time / 1000 - time.time()) < 600, "the start's time")
    check(run.data.params["model"] == "mlp" and float(run.data.params["lr"]) == 0.1 and run.data.params["epochs"] == "2",
          run.data.params)
    check(run.data.tags["mlflow.source.name"] == "sluice train" and run.data.tags["sluice.version"], run.data.tags)
    point = client.get_metric_history(run.info.run_id, "test/loss")[-1]
    check(abs(point.timestamp / 1000 - time.time()) < 600, "a point's time")
    # It is over, and goes on for two epochs more, with another learning rate; MLflow keeps the first one.
    training = Training(program, training.logdir, "--mlflow", server.uri, "--epochs", "4", "--lr", "0.05", "--resume")
    training.end()
    _, again = same(server, training, "a run that goes on")
    check(again.info.run_id == run.info.run_id and again.info.status == "FINISHED", again.info)
    check(again.data.params["epochs"] == "2" and again.data.tags["resumed.epochs"] == "4", again.data.tags)
    failed = Training(program, os.path.join(work, "failed"), "--mlflow", server.uri, "--epochs", "9", "--lr", "1e30")
    check("the loss is" in failed.end(1), "a loss that is not a number")
    check(server.run_of(failed.logdir)[1].info.status == "FAILED", "the status of a run that failed")
    server.kill()


def numbers_that_are_none(program, work):
    """What MLflow makes of NaN and infinities, sent as the program sends them: see mlflow_test.cc for the text."""
    server = Server(work).start()
    from mlflow.utils.rest_utils import http_request
    credentials = mlflow.utils.rest_utils.MlflowHostCreds(server.uri)
    client = mlflow.MlflowClient(server.uri)
    run = client.create_run("0").info.run_id
    metrics = [{"key": "x/y", "value": value, "timestamp": 5, "step": step} for step, value in
               enumerate(["NaN", "Infinity", "-Infinity", 0.5])]
    for _ in range(2):  # the second time changes nothing
        answer = http_request(credentials, "/api/2.0/mlflow/runs/log-batch", "POST",
                              json={"run_id": run, "metrics": metrics, "params": [], "tags": []})
        check(answer.status_code == 200, answer.text)
    values = [point.value for point in sorted(client.get_metric_history(run, "x/y"), key=lambda point: point.step)]
    check(len(values) == 4 and values[0] != values[0] and values[1] > 1e308 and values[2] < -1e308 and values[3] == 0.5, values)
    server.kill()


def a_server_that_comes_and_goes(program, work):
    server = Server(work)
    training = Training(program, os.path.join(work, "coming"), "--mlflow", server.uri, "--epochs", "100000")
    wait_until(lambda: len(training.rows()) > 30, "rows without a server")
    server.start()
    place = os.path.join(training.logdir, "mlflow.json")
    wait_until(lambda: json.load(open(place))["sent"] > 50, "rows with one")
    server.kill()
    rows = len(training.rows())
    wait_until(lambda: len(training.rows()) > rows + 30, "rows while it is away")
    server.start()
    sent = json.load(open(place))["sent"]
    wait_until(lambda: json.load(open(place))["sent"] > sent, "rows when it is back")
    said = training.interrupt()
    same(server, training, "a server that comes and goes")
    check("takes the rows again" in said, said)
    server.kill()


def a_killed_training(program, work):
    server = Server(work).start()
    logdir = os.path.join(work, "killed")
    flags = ["--mlflow", server.uri, "--epochs", "100000", "--save-steps", "7"]
    for rows in (60, 150):
        training = Training(program, logdir, *flags, "--resume")
        wait_until(lambda: len(training.rows()) > rows and os.path.isdir(os.path.join(logdir, "last")), "rows")
        training.process.send_signal(signal.SIGKILL)
        training.process.communicate()
    server.kill()  # what is left then is sent when it is back
    training = Training(program, logdir, *flags, "--resume")
    wait_until(lambda: len(training.rows()) > 250, "rows")
    training.process.send_signal(signal.SIGKILL)
    training.process.communicate()
    server.start()
    training = Training(program, logdir, *flags, "--resume")
    wait_until(lambda: len(training.rows()) > 350, "rows")
    training.interrupt()
    # Steps that were done twice may be there twice: MLflow takes nothing back.
    _, run = same(server, training, "a killed training", exactly=False)
    check(run.info.status == "KILLED", run.info)
    check(len(mlflow.MlflowClient(server.uri).search_runs([run.info.experiment_id])) == 1, "more than one run")
    server.kill()


def a_server_that_never_answers(program, work):
    logdir = os.path.join(work, "mute")
    begin = time.time()
    Training(program, os.path.join(work, "without"), "--epochs", "10").end()
    alone = time.time() - begin
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen(50)
        begin = time.time()
        training = Training(program, logdir, "--mlflow", f"http://127.0.0.1:{mute.getsockname()[1]}", "--epochs", "10")
        said = training.end()
        took = time.time() - begin
    check(took < 2 * alone + 15, f"{took:.1f} s instead of {alone:.1f} s")
    check("`sluice mlflow " + logdir + "`" in said, said)
    tried = subprocess.run([program, "mlflow", logdir, "--wait", "2s"], capture_output=True, text=True)
    check(tried.returncode == 1 and "still in" in tried.stderr, tried)
    server = Server(work).start()
    sent = subprocess.run([program, "mlflow", logdir, "--mlflow", server.uri], capture_output=True, text=True)
    check(sent.returncode == 0, sent)
    _, run = same(server, training, "what was sent later")
    check(run.info.status == "FINISHED", run.info)
    server.kill()


def who_is_not_let_in(program, work):
    asked = []

    class Guard(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.headers.get("Authorization"))
            body = b'{"error_code": "PERMISSION_DENIED", "message": "who are you?"}'
            self.send_response(401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    guard = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Guard)
    threading.Thread(target=guard.serve_forever, daemon=True).start()
    uri = f"http://127.0.0.1:{guard.server_port}"
    for env, header in [({"MLFLOW_TRACKING_TOKEN": "t0k"}, "Bearer t0k"),
                        ({"MLFLOW_TRACKING_USERNAME": "me", "MLFLOW_TRACKING_PASSWORD": "pw"}, "Basic bWU6cHc="), ({}, None)]:
        asked.clear()
        said = Training(program, os.path.join(work, "guarded"), "--mlflow", uri, "--epochs", "2", env=env).end()
        check(asked and set(asked) == {header}, asked)
        check(said.count("who are you?") == 1 and "MLFLOW_TRACKING_TOKEN" in said and "t0k" not in said, said)
    guard.shutdown()
    # Something that is not MLflow.
    plain = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    plain.RequestHandlerClass.log_message = lambda *_: None
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    said = Training(program, os.path.join(work, "wrong"), "--mlflow", f"http://127.0.0.1:{plain.server_port}", "--epochs", "1").end()
    check(" W MLflow" in said and "is the address right?" in said and "mlflow.jsonl" in said, said)
    plain.shutdown()
    said = Training(program, os.path.join(work, "usage"), "--mlflow", "databricks", "--epochs", "1").end(2)
    check("http://127.0.0.1:5000" in said, said)


def main(program):
    for case in (with_a_server, numbers_that_are_none, a_server_that_comes_and_goes, a_killed_training,
                 a_server_that_never_answers, who_is_not_let_in):
        with tempfile.TemporaryDirectory() as work:
            begin = time.time()
            case(program, work)
            print(f"{case.__name__}: {time.time() - begin:.1f} s", flush=True)
    print("passed")


main(sys.argv[1])
