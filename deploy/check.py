"""Builds the sdist and from it the wheel, installs that into a fresh environment, and serves.

`make package` runs it. What is looked at: the console's files are in the wheel, the page and every
module that it loads come from the installed server, an event is taken, SIGHUP reloads and SIGTERM
ends in order. The unit for systemd is verified where `systemd-analyze` is there, and the dashboard
against the schema of Grafana. It needs a package registry, and takes a minute or two.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urljoin
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[1]
RULE = """
eventtype A { attribute long n; };
A correlation Twice (A a) a{2} { case true: push a; }
"""
DASHBOARD = """
import json, sys
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

register_default_plugins()
given = json.load(open(sys.argv[1]))
known = json.loads(JSONEncoder().encode(Dashboard.from_json(given)))

def unknown(given, known, path=""):
    if isinstance(given, dict):
        for name, value in given.items():
            if name in known:
                yield from unknown(value, known[name], f"{path}/{name}")
            elif value not in (None, [], {}, "", False):
                yield f"{path}/{name}"
    elif isinstance(given, list):
        for number, value in enumerate(given):
            yield from unknown(value, known[number], f"{path}/{number}")
    elif given != known:
        yield path

if found := list(unknown(given, known)):
    sys.exit(f"not of the schema: {found}")
"""


def main() -> None:
    with TemporaryDirectory(prefix="ensue-package-") as folder:
        place = Path(folder)
        wheel = built(place)
        python = installed(place, wheel)
        checked_serving(place, python)
        verified_unit(place, python.parent / "ensue")
        verified_dashboard(place)
    print("the package serves")


def built(place: Path) -> Path:
    """The wheel, made from the sdist and not from the working tree."""
    tools = place / "tools"
    venv.create(tools, with_pip=True)
    pip(tools / "bin" / "python", "build")
    dist = place / "dist"
    run(tools / "bin" / "python", "-m", "build", "--outdir", dist, ROOT)
    (wheel,) = dist.glob("*.whl")
    inside = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    for file in (source / "ensue" / "server" / "console").rglob("*.*"):
        if file.relative_to(source).as_posix() not in inside:
            raise SystemExit(f"`{file.relative_to(source)}` is not in the wheel")
    if any("axe-core" in each for each in inside):
        raise SystemExit("what only tests use is in the wheel")
    print(f"built {', '.join(each.name for each in sorted(dist.iterdir()))}")
    return wheel


def installed(place: Path, wheel: Path) -> Path:
    fresh = place / "fresh"
    venv.create(fresh, with_pip=True)
    python = fresh / "bin" / "python"
    pip(python, f"{wheel}[server,knowledge]")
    return python


def checked_serving(place: Path, python: Path) -> None:
    work = place / "work"
    work.mkdir()
    (work / "twice.cor").write_text(RULE)
    (work / "ensue.toml").write_text(
        '[server]\nlisten = "127.0.0.1:0"\ndata = "data"\nclock = "events"\n'
        '[[library]]\nname = "twice"\nfile = "twice.cor"\n'
    )
    errors = work / "stderr.txt"
    with errors.open("w") as file:
        server = subprocess.Popen(
            [python.parent / "ensue", "serve", "ensue.toml"], cwd=work, stderr=file
        )
    try:
        url = awaited(errors, r"(http://\S+)/\n(?:.*\n)*ready\n")
        page = fetched(url, "/").decode()
        modules = re.findall(r'(?:src|href)="(/console/[^"]+)"', page)
        for path in modules:
            for name in re.findall(r'from "(\.[^"]+)"', fetched(url, path).decode()):
                if (module := urljoin(path, name)) not in modules:
                    modules.append(module)
        print(f"the page and {len(modules)} files of it are served")
        event = {"source": "check", "type": "A", "time": "2026-01-01T00:00:00Z", "data": {"n": 1}}
        batch = json.dumps([{"id": str(each), **event} for each in range(2)]).encode()
        headers = {"Content-Type": "application/cloudevents-batch+json"}
        with urlopen(Request(f"{url}/v1/events", batch, headers)) as answer:
            assert json.load(answer)["accepted"] == 2
        assert len(json.loads(fetched(url, "/v1/outputs"))["outputs"]) == 1
        server.send_signal(signal.SIGHUP)
        awaited(errors, r"(reloaded: .*)\n")
    finally:
        server.terminate()
        code = server.wait(60)
    if code:
        raise SystemExit(f"the server ended with {code}: {errors.read_text()}")


def verified_unit(place: Path, command: Path) -> None:
    """The unit with the command that was just installed in the place of its own."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        print("there is no `systemd-analyze`, and the unit is not verified")
        return
    unit = place / "ensue.service"
    text = (ROOT / "deploy" / "ensue.service").read_text()
    unit.write_text(text.replace("/usr/local/bin/ensue", str(command)))
    run(tool, "verify", unit)
    # Exposure in tenths, from 0 (none) to 100.
    run(tool, "security", "--offline=true", "--threshold=20", unit)
    print("the unit is verified, and exposes little")


def verified_dashboard(place: Path) -> None:
    """Whether Grafana's schema, as its library for Python has it, knows all of the dashboard."""
    python = place / "tools" / "bin" / "python"
    pip(python, "grafana-foundation-sdk")
    run(python, "-c", DASHBOARD, ROOT / "deploy" / "monitoring" / "dashboard.json")
    print("the dashboard is of Grafana's schema")


def awaited(file: Path, pattern: str) -> str:
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        if found := re.search(pattern, file.read_text()):
            return found[1]
        time.sleep(0.05)
    raise SystemExit(f"`{pattern}` does not come: {file.read_text()}")


def fetched(url: str, path: str) -> bytes:
    with urlopen(url + path) as answer:
        content: bytes = answer.read()
    return content


def pip(python: Path, *what: str) -> None:
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)


def run(*command: object) -> None:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(f"`{' '.join(str(each) for each in command[:4])} ...` has failed")


if __name__ == "__main__":
    main()
