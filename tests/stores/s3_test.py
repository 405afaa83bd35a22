"""s3_test.py PROGRAM: S3 as a user meets it. moto is the store; before it stands a server that computes each request's
signature once more with botocore's signer, and makes things go wrong. Run by a Python with both."""

import datetime
import hashlib
import http.client
import json
import logging
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

try:
    import boto3
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials
    from moto.server import ThreadedMotoServer
except ImportError:
    print("skipped: the Python packages boto3 and moto are not there (scripts/setup installs them)")
    sys.exit(77)

from support import Handler, Program, Server, check, closing, failures, large_log_of_a_run, logs_of_a_run, md5, random_file

MAKE_IMAGES = Path(__file__).resolve().parent.parent / "end_to_end/make_images.py"
REGION, BUCKET = "us-west-2", "a-bucket"
KEYS = {"AKIAONE": ("secret/one+", ""), "ASIATWO": ("secret/two=", "session/token=="),
        "ASIAOLD": ("secret/old", "an old session")}
SECRETS = [secret for pair in KEYS.values() for secret in pair if secret]
FORWARDED = ("host", "connection", "content-length", "transfer-encoding")


def signature_error(handler, body):
    """What is wrong with a request's signature, by botocore's own: (code, message), or None."""
    authorization = handler.headers.get("Authorization", "")
    if not authorization.startswith("AWS4-HMAC-SHA256 "):
        return ("AccessDenied", "Access Denied") if handler.server.private else None
    parts = dict(part.strip().split("=", 1) for part in authorization.split(" ", 1)[1].split(","))
    key, _, region, service, _ = parts["Credential"].split("/")
    if key not in KEYS:
        return "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records."
    if key == "ASIAOLD":
        return "ExpiredToken", "The provided token has expired."
    if region != REGION or service != "s3":
        return "AuthorizationHeaderMalformed", f"the region '{region}' is wrong; expecting '{REGION}'"
    secret, session = KEYS[key]
    if hashlib.sha256(body).hexdigest() != handler.headers["x-amz-content-sha256"]:
        return "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."
    names = parts["SignedHeaders"].split(";")
    unsigned = {name.lower() for name in handler.headers if name.lower().startswith("x-amz-")} - set(names)
    if unsigned or "host" not in names:
        return "AccessDenied", f"There were headers present in the request which were not signed: {unsigned}"
    request = AWSRequest(handler.command, "http://" + handler.headers["Host"] + handler.path, data=body,
                         headers={name: handler.headers[name] for name in names})
    request.context["timestamp"] = handler.headers["x-amz-date"]
    auth = S3SigV4Auth(Credentials(key, secret, session or None), service, region)
    text = auth.string_to_sign(request, auth.canonical_request(request))
    if auth.signature(text, request) != parts["Signature"] or handler.headers.get("x-amz-security-token", "") != session:
        return "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."
    sent = datetime.datetime.strptime(handler.headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
    sent = sent.replace(tzinfo=datetime.timezone.utc).timestamp()
    if abs(sent - time.time() - handler.server.skew) > 900:
        return "RequestTimeTooSkewed", "The difference between the request time and the current time is too large."
    return None


class Front(Handler):
    def answer(self):
        server, body = self.server, self.body()
        error = signature_error(self, body)
        if error:
            server.refused.append(error[0])
            text = f"<Error><Code>{error[0]}</Code><Message>{error[1]}</Message>"
            text += f"<Region>{REGION}</Region></Error>"
            status = 400 if error[0] in ("AuthorizationHeaderMalformed", "ExpiredToken") else 403
            now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=server.skew)
            headers = [("Date", now.strftime("%a, %d %b %Y %H:%M:%S GMT"))]
            if status == 400:
                headers.append(("x-amz-bucket-region", REGION))
            return self.reply(status, b"" if self.command == "HEAD" else text.encode(), headers)
        with server.lock:
            server.requests.append((self.command, self.path))
            if ".log" in self.path:
                server.log_bytes += len(body)
                server.copied_parts += "partNumber=" in self.path and "x-amz-copy-source" in self.headers
            ranged = self.command == "GET" and "Range" in self.headers
            fault = server.faults.pop(0) if server.faults and (ranged or server.all_requests) else None
            if ranged and server.between_ranges:
                server.between_ranges.pop(0)()
        if fault == "reset":
            self.close_connection = True
            return self.connection.close()
        if fault == "slow":
            return self.reply(400, b"<Error><Code>RequestTimeout</Code><Message>Your socket connection was idle.</Message></Error>")
        if isinstance(fault, int):
            return self.reply(fault, b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
        status, reply, headers = self.forward(body)
        if fault == "flip" and reply:
            reply = reply[:100] + bytes([reply[100] ^ 1]) + reply[101:]
        if fault == "lost":
            self.close_connection = True
            return self.connection.close()
        return self.reply(status, reply, headers, cut=len(reply) // 2 if fault == "cut" else None)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def forward(self, body):
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.moto_port)) as moto:
            headers = {name: value for name, value in self.headers.items() if name.lower() not in FORWARDED}
            moto.request(self.command, self.path, body=body, headers=headers)
            reply = moto.getresponse()
            found = [(name, value) for name, value in reply.getheaders()
                     if name.lower() not in ("connection", "transfer-encoding", "date", "server")
                     and (self.command == "HEAD" or name.lower() != "content-length")
                     # Of a copy S3 computes it again; moto keeps that of the original's parts.
                     and not ("/copies/" in self.path and name.lower().startswith("x-amz-checksum"))]
            return reply.status, reply.read(), found


def start_front(moto_port):
    front = Server(Front)
    front.moto_port, front.private, front.skew, front.all_requests = moto_port, True, 0, False
    front.lock, front.requests, front.refused, front.faults = threading.Lock(), [], [], []
    front.between_ranges, front.log_bytes, front.copied_parts = [], 0, 0
    return front


def there_and_back(run, s3, work):
    names = ["plain.bin", "a b+c&d=é%20.bin", "colon:and'quote~.bin", "deep/er/x.bin", "comma,(x)!*.bin"]
    for number, name in enumerate(names):
        source = random_file(work / "source.bin", 1000 + number, number)
        run("data", "cp", source, f"s3://{BUCKET}/odd/{name}")
        stored = s3.get_object(Bucket=BUCKET, Key="odd/" + name)["Body"].read()
        check(stored == source.read_bytes(), "stored under", name)
        back = work / "back.bin"
        run("data", "cp", f"s3://{BUCKET}/odd/{name}".replace("*", "[*]"), back, "--overwrite")
        check(back.read_bytes() == stored, "read back from", name)
    run("data", "cp", f"s3://{BUCKET}/odd/**", f"{work}/all/")
    check({path.name for path in (work / "all").iterdir()} == {name.rsplit("/")[-1] for name in names}, "listed with **")
    # Three parts, and what boto3 wrote with each of its checksums.
    large = random_file(work / "large.bin", (40 << 20) + 7, 1)
    run("data", "cp", large, f"s3://{BUCKET}/large.bin")
    check(s3.get_object(Bucket=BUCKET, Key="large.bin")["Body"].read() == large.read_bytes(), "an upload in parts")
    run("data", "cp", f"s3://{BUCKET}/large.bin", f"s3://{BUCKET}/copies/")
    run("data", "cp", f"s3://{BUCKET}/copies/large.bin", work / "large_back.bin")
    check(md5(work / "large_back.bin") == md5(large), "copied within the store, and read in ranges")
    refused = run("data", "cp", large, f"s3://{BUCKET}/large.bin", status=1)
    check("--overwrite" in refused, "over an object that is there:", refused)
    for name in ("CRC32", "SHA256"):
        s3.upload_file(str(large), BUCKET, "by_boto", ExtraArgs={"ChecksumAlgorithm": name})
        run("data", "cp", f"s3://{BUCKET}/by_boto", work / "by_boto", "--overwrite")
        check(md5(work / "by_boto") == md5(large), "written by boto3 with", name)
    missing = run("data", "cp", f"s3://{BUCKET}/none", work / "none", status=1)
    check("no such object" in missing, "a missing object:", missing)
    missing = run("data", "cp", "s3://no-such-bucket/*.tar", f"{work}/none/", status=1)
    check("NoSuchBucket" in missing, "a missing bucket:", missing)
    nothing = run("data", "cp", f"s3://{BUCKET}/zzz*", f"{work}/none/", status=1)
    check("no object matches" in nothing, "no match:", nothing)


def updates(run, work):
    """A set is packed into the bucket, and a sample of it gets another class."""
    subprocess.run([sys.executable, MAKE_IMAGES, work / "images", "2", "5"], check=True)
    run("data", "pack", work / "images", f"s3://{BUCKET}/set", "--shard-size", 4)
    run("data", "cat", f"s3://{BUCKET}/set/*.tar", "--key", "0000005", "--out", work / "fixed")
    (work / "fixed/0000005.cls").write_text("9")
    said = run("data", "update", f"s3://{BUCKET}/set/*.tar", work / "fixed")
    check("in 1 shard, which was written again" in said, "update:", said)
    found = run("data", "cat", f"s3://{BUCKET}/set/*.tar", "--key", "0000005", "--part", "cls")
    check(found == "9", "the sample that was updated:", found)
    said = run("data", "verify", f"s3://{BUCKET}/set/*.tar")
    check("10 samples" in said and "no problems" in said, "the set that was updated:", said)


def many_objects(run, s3, work):
    for number in range(1003):
        s3.put_object(Bucket=BUCKET, Key=f"many/{number:04}.txt", Body=b"x")
    run("data", "cp", f"s3://{BUCKET}/many/*.txt", f"{work}/many/", "--workers", "8")
    check(len(list((work / "many").iterdir())) == 1003, "a listing of two pages")


def faults(run, front, s3, work):
    large = work / "large.bin"

    def read(*wanted, status=0):
        front.faults = list(wanted)
        (work / "again.bin").unlink(missing_ok=True)
        said = run("data", "cp", f"s3://{BUCKET}/large.bin", work / "again.bin", status=status)
        front.faults = []
        return said

    for wanted in ([503], ["reset"], ["cut"], [500, "cut", 503, "reset", 503]):
        read(*wanted)
        check(md5(work / "again.bin") == md5(large), "read in spite of", wanted)
    run("data", "cp", random_file(work / "source.bin", 100000, 7), f"s3://{BUCKET}/checked")
    front.faults = ["flip"]
    said = run("data", "cp", f"s3://{BUCKET}/checked", work / "checked", status=1)
    check("do not fit its crc32c" in said, "a flipped bit:", said)

    def replace():
        s3.put_object(Bucket=BUCKET, Key="moving", Body=b"other" * 9000000)
    s3.put_object(Bucket=BUCKET, Key="moving", Body=b"first" * 9000000)
    front.between_ranges = [lambda: None, replace]
    said = run("data", "cp", f"s3://{BUCKET}/moving", work / "moving", status=1)
    check("was replaced" in said and not (work / "moving").exists(), "replaced while it was read:", said)
    # Uploads: each request in turn fails once, or is done and its answer lost.
    front.all_requests = True
    for fault, places in ((503, 8), ("lost", 8), ("slow", 4)):
        for place in range(places):
            front.faults = [None] * place + [fault]
            s3.delete_object(Bucket=BUCKET, Key="up")
            run("data", "cp", large, f"s3://{BUCKET}/up")
            stored = s3.get_object(Bucket=BUCKET, Key="up")["Body"].read()
            check(stored == large.read_bytes(), "uploaded in spite of", fault, "at request", place)
    front.all_requests, front.faults = False, []
    left = s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    check(len(left) <= 1, "uploads that are left:", left)  # one whose first answer was lost
    # The answer of a PUT that makes the object under a condition.
    front.all_requests, front.faults = True, [None, None, "lost"]
    run("data", "cp", work / "source.bin", f"s3://{BUCKET}/conditional")
    front.all_requests, front.faults = False, []


class Instance(Handler):
    """An instance's metadata, version 2, and a container's endpoint."""

    def do_PUT(self):
        self.reply(200, b"a-metadata-token")

    def do_GET(self):
        role = "/latest/meta-data/iam/security-credentials/"
        container = self.path == "/container"
        if container and self.headers.get("Authorization") != "container secret":
            return self.reply(401)
        if not container and self.headers.get("X-aws-ec2-metadata-token") != "a-metadata-token":
            return self.reply(401)
        if self.path == role:
            return self.reply(200, b"a-role")
        if not container and self.path != role + "a-role":
            return self.reply(404)
        self.server.asked += 1
        key = "ASIAOLD" if self.server.old_keys and self.server.asked == 1 else "ASIATWO"
        expires = "2100-01-01T00:00:00Z"
        return self.reply(200, json.dumps({"AccessKeyId": key, "SecretAccessKey": KEYS[key][0], "Token": KEYS[key][1],
                                           "Expiration": expires}).encode())


def credentials(run, front, s3, work):
    get = ("data", "cp", f"s3://{BUCKET}/odd/plain.bin", work / "x", "--overwrite")
    none = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    (work / "credentials").write_text("[default]\naws_access_key_id = AKIANONE\naws_secret_access_key = x\n"
                                      "[other]\naws_access_key_id=ASIATWO\naws_secret_access_key = secret/two=\n"
                                      "aws_session_token = session/token==\n")
    (work / "config").write_text(f"[profile other]\nregion = {REGION}\nendpoint_url = {front.address}\ns3 =\n  region = no\n"
                                 "[profile sso]\nsso_session = x\n")
    files = {**none, "AWS_SHARED_CREDENTIALS_FILE": str(work / "credentials"), "AWS_CONFIG_FILE": str(work / "config")}
    run(*get, **files, AWS_PROFILE="other", AWS_ENDPOINT_URL=None, AWS_REGION=None)
    said = run(*get, **files, status=1)
    check("InvalidAccessKeyId" in said and "AKIANONE" in said and str(work / "credentials") in said, "a wrong key:", said)
    said = run(*get, **files, AWS_PROFILE="sso", status=1)
    check("export-credentials" in said, "a profile with SSO:", said)
    said = run(*get, **files, AWS_PROFILE="none", status=1)
    check("check AWS_PROFILE" in said, "a profile that is not there:", said)
    said = run(*get, AWS_SECRET_ACCESS_KEY="wrong", status=1)
    check("SignatureDoesNotMatch" in said and "its secret is wrong" in said, "a wrong secret:", said)
    nowhere = {**none, "AWS_SHARED_CREDENTIALS_FILE": "/none", "AWS_CONFIG_FILE": "/none", "AWS_EC2_METADATA_DISABLED": "true"}
    said = run(*get, **nowhere, status=1)
    for place in ("AccessDenied", "AWS_ACCESS_KEY_ID", "/none", "metadata"):
        check(place in said, "no credentials, looked in", place, ":", said)
    front.private = False
    s3.put_object_acl(Bucket=BUCKET, Key="odd/plain.bin", ACL="public-read")
    run(*get, **nowhere)  # a public bucket
    front.private = True
    with closing(Server(Instance)) as instance:
        nowhere.update(AWS_EC2_METADATA_DISABLED=None, AWS_EC2_METADATA_SERVICE_ENDPOINT=instance.address)
        for old in (False, True):
            instance.asked, instance.old_keys = 0, old
            run(*get, **nowhere)
            check(instance.asked == 1 + old, "keys were fetched", instance.asked, "times")
        container = {**nowhere, "AWS_EC2_METADATA_DISABLED": "1",
                     "AWS_CONTAINER_CREDENTIALS_FULL_URI": instance.address + "/container"}
        run(*get, **container, AWS_CONTAINER_AUTHORIZATION_TOKEN="container secret")
        container["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://192.0.2.1/container"
        said = run(*get, **container, status=1)
        check("unencrypted" in said, "keys from another machine:", said)


def places(run, front, work):
    get = ("data", "cp", f"s3://{BUCKET}/odd/plain.bin", work / "x", "--overwrite")
    for region in ("eu-west-1", None):  # the bucket says its own
        front.refused.clear()
        run(*get, AWS_REGION=region)
        check(front.refused == ["AuthorizationHeaderMalformed"], "with the region", region, ":", front.refused)
    for skew in (-3600, 3600):
        front.skew = skew
        said = run(*get)
        check("clock is" in said, "a wrong clock:", said)
    front.skew = 0


def main(program):
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    moto_port = moto.get_host_and_port()[1]
    s3 = boto3.client("s3", endpoint_url=f"http://127.0.0.1:{moto_port}", region_name=REGION, aws_access_key_id="a",
                      aws_secret_access_key="b")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
    with tempfile.TemporaryDirectory() as folder, closing(start_front(moto_port)) as front:
        work = Path(folder)
        run = Program(program, SECRETS, AWS_ENDPOINT_URL=front.address, AWS_ACCESS_KEY_ID="AKIAONE",
                      AWS_SECRET_ACCESS_KEY=KEYS["AKIAONE"][0], AWS_REGION=REGION, HOME=folder)
        there_and_back(run, s3, work)
        updates(run, work)
        check(not front.refused, "signatures that botocore computes differently:", front.refused)
        logs_of_a_run(run, f"s3://{BUCKET}", work)
        front.log_bytes = 0
        size = large_log_of_a_run(run, f"s3://{BUCKET}", work, 6 << 20)
        # Whole whenever it has doubled, up to 5 MiB, which is twice the last of these; then what was added to it, or
        # once more whole if the run ends before that.
        check(front.copied_parts > 0 and front.log_bytes < 3 * size, "a log of", size, "bytes took", front.log_bytes)
        many_objects(run, s3, work)
        faults(run, front, s3, work)
        credentials(run, front, s3, work)
        places(run, front, work)
    moto.stop()
    print(f"{len(failures)} failures" if failures else "passed")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main(sys.argv[1])
