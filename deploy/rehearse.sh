#!/bin/sh
# Builds the image of deploy/Dockerfile where no registry of images can be reached, and starts it once.
# The base is made of packages of Debian (debootstrap) and stands in for the one that the Dockerfile names:
# its Python is Debian's. Needs root, debootstrap and buildah (apt-get install debootstrap buildah), a
# mirror of Debian, a package index for Python, some minutes, and several GB of disk, which it gives back.
# PORT is the port that the server is tried on. No daemon and no namespaces are needed.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
port=${PORT:-8429}
server=""
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
buildah() { command buildah --storage-driver vfs --root "$work/images" --runroot "$work/running" "$@"; }

base=$(sed -n 's/^FROM \([^ ]*\).*/\1/p' "$here/deploy/Dockerfile" | head -n 1)
debootstrap --variant=minbase --include=ca-certificates,python3-pip bookworm "$work/root" >"$work/log"
# As in the images of Python: `python` is a command, and pip may install into the system.
ln -s python3 "$work/root/usr/bin/python"
rm -f "$work"/root/usr/lib/python3*/EXTERNALLY-MANAGED
cp /etc/ssl/certs/ca-certificates.crt "$work/root/etc/ssl/certs/"
printf '[global]\ncert = /etc/ssl/certs/ca-certificates.crt\n' >"$work/root/etc/pip.conf"
made=$(buildah from scratch)
buildah add -q "$made" "$work/root" /
buildah commit -q "$made" "docker.io/library/$base"
buildah build --isolation chroot --pull-never -f "$here/deploy/Dockerfile" -t ensue "$here"

mkdir "$work/settings"
cat >"$work/settings/ensue.toml" <<END
[server]
listen = "127.0.0.1:$port"
data = "/data"
END
chmod -R a+rX "$work/settings"
running=$(buildah from --pull-never localhost/ensue)
buildah copy -q "$running" "$work/settings" /etc/ensue
# Writes its own process id down, and becomes the server.
buildah run --isolation chroot "$running" -- sh -c \
    'test "$(id -u)" -ne 0 && echo $$ && exec ensue serve /etc/ensue/ensue.toml' >"$work/said" 2>&1 &
waited=$!
for _ in $(seq 60); do grep -q '^ready' "$work/said" && break || sleep 1; done
server=$(head -n 1 "$work/said")
python3 -c "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())" \
    "http://127.0.0.1:$port/health"
kill -HUP "$server"
sleep 2
kill -TERM "$server"
server=""
wait "$waited"
grep -q '^reloaded' "$work/said"
echo "the image is built; the server in it starts without privileges, reloads and ends in order"
