#!/bin/sh
# Installs the servers that tests/history, tests/federation and tests/server start, the browser that tests/server drives
# and the editor of tests/editor, where that is possible without asking: on Debian and its kin, as root. Elsewhere it says what
# is missing; the tests then skip, and say so.
set -eu

missing=""
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 ||
    missing="postgresql"
command -v mariadbd >/dev/null 2>&1 || [ -x /usr/sbin/mariadbd ] || missing="$missing mariadb-server"
# Opening a page takes Chromium's shell without a window a third of what it takes Chromium.
shell=chromium-headless-shell
command -v "$shell" >/dev/null 2>&1 || missing="$missing $shell fonts-dejavu-core"
# An editor that drives the language server.
command -v nvim >/dev/null 2>&1 || missing="$missing neovim"
# For the grammar of the extension for Visual Studio Code.
command -v npm >/dev/null 2>&1 || missing="$missing npm"
for server in mosquitto nats-server rabbitmq-server redis-server; do
    command -v "$server" >/dev/null 2>&1 || [ -x "/usr/sbin/$server" ] || missing="$missing $server"
done
# For the dashboard and the alerts of deploy/monitoring.
command -v promtool >/dev/null 2>&1 || missing="$missing prometheus"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] && sudo -n true 2>/dev/null; then
    exec sudo -n sh "$0"
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed: $missing (needs apt-get and root); the tests that need them are skipped" >&2
    exit 0
fi

# The servers of the packages are not to start by themselves: tests start their own.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
apt-get update >"$log" 2>&1 || true
# Not every distribution has the shell by itself.
apt-cache show "$shell" >/dev/null 2>&1 || missing=$(echo "$missing" | sed "s/$shell/chromium/")
# shellcheck disable=SC2086 - a list of words
if ! apt-get install -y --no-install-recommends $missing >>"$log" 2>&1; then
    tail -n 5 "$log" >&2
    echo "could not be installed: $missing; the tests that need them are skipped" >&2
fi
rm -f "$log"
