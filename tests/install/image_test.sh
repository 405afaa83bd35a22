#!/usr/bin/env bash
# image_test.sh [FILE]: the image of scripts/image as a user runs it (as root; `make test-image`).
#
# umoci unpacks FILE (default: that of build/dist). Its command runs in a root that is read-only, as the image's user,
# with the image's environment, /tmp in memory and a folder for /data, and without a network. It trains until the loss
# has fallen, resumes, and writes nothing outside /tmp and /data.
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() { printf 'test-image: %s\n' "$*" >&2; exit 1; }
say() { printf '\n== %s (%d s so far)\n' "$*" "$SECONDS"; }

((EUID == 0)) || fail "it mounts the image's root and needs to be root"
command -v umoci >/dev/null || fail "install the Debian package umoci"
file="${1:-$(find build/dist -maxdepth 1 -name 'sluice-*.oci.tar' | sort | tail -1)}"
[[ -n "$file" && -e "$file" ]] || fail "there is no image in build/dist: run make image"
file="$(realpath "$file")"

work="$(mktemp -d "$PWD/build/image_test.XXXXXX")"
trap 'rm -rf "$work"' EXIT

if [[ -e "$file.sha256" ]]; then
  say "checksum"
  (cd "$(dirname "$file")" && sha256sum -c "$(basename "$file").sha256")
fi
(($(stat -c %s "$file") <= 400000000)) || fail "$file has more than 400 MB"

say "unpacking"
mkdir "$work/layout" "$work/data"
tar -xf "$file" -C "$work/layout"
tag="$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"])' \
  "$work/layout/index.json")"
umoci unpack --image "$work/layout:$tag" "$work/bundle"
chown 1000:1000 "$work/data"

# What a container's runtime is told: the user, the environment, the folder and the command, one in a line.
field() { python3 -c '
import json, sys
process = json.load(open(sys.argv[1]))["process"]
print("\n".join({"user": [str(process["user"]["uid"]), str(process["user"]["gid"])], "env": process["env"],
                 "args": process["args"], "cwd": [process["cwd"]]}[sys.argv[2]]))' "$work/bundle/config.json" "$1"; }
mapfile -t user < <(field user)
mapfile -t environment < <(field env)
mapfile -t arguments < <(field args)
cwd="$(field cwd)"
[[ "${user[*]}" == "1000 1000" ]] || fail "the image's user is ${user[*]}, expected 1000 1000"
[[ "${arguments[*]}" == "/opt/sluice/bin/sluice --help" ]] || fail "the image runs ${arguments[*]}"
[[ "$cwd" == /data ]] || fail "the image starts in $cwd"
grep -q '"org.opencontainers.image.version": *"'"$tag"'"' "$work/bundle/config.json" || fail "the label of the version is missing"

inside() {  # command…: as the image's user, in a read-only root
  # shellcheck disable=SC2016
  unshare --mount --net --pid --fork --kill-child sh -euc 'root=$1 data=$2 cwd=$3; shift 3
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --bind /dev "$root/dev"
    mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
    mount --bind "$data" "$root/data"
    mount -o remount,ro,bind "$root"
    exec chroot --userspec=1000:1000 "$root" /usr/bin/env -i --chdir="$cwd" "$@"' \
    sh "$work/bundle/rootfs" "$work/data" "$cwd" "${environment[@]}" "$@"
}
sluice() { inside "${arguments[0]}" "$@"; }

say "the entry point, as a plain user in a read-only root"
if inside /bin/sh -c 'touch /opt/sluice/new 2>/dev/null || touch /home/user/new 2>/dev/null'; then fail "the root can be written"; fi
[[ "$(inside /usr/bin/id -u)" == 1000 ]] || fail "it does not run as the image's user"
inside "${arguments[@]}" | grep -q train || fail "the image's own command does not print the help"
inside sluice --version  # by PATH
sluice devices --plugin cpu
say "training"
sluice data digits /opt/sluice/share/sluice/digits.csv.gz digits
train=(train --plugin cpu --model cifar_resnet8 --train 'digits/train-*.tar' --test 'digits/test-*.tar' --classes 10
  --batch-size 32 --lr 0.1 --warmup-epochs 1 --log-steps 10 --logdir run)
sluice "${train[@]}" --epochs 2
sluice "${train[@]}" --epochs 3 --resume
python3 - "$work/data/run/metrics.csv" <<'END'
import csv, sys
rows = [row for row in csv.DictReader(open(sys.argv[1])) if row["split"] == "test"]
losses = [float(row["loss"]) for row in rows]
print("loss of the test after each epoch:", losses)
assert len(losses) == 3 and losses[-1] < losses[0], losses
END
[[ "$(stat -c %u "$work/data/run/last")" == 1000 ]] || fail "the checkpoint does not belong to the image's user"
say "all good"
