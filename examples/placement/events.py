"""Writes an hour of the plant, as JSON lines: mostly nothing happens.

python events.py > events.jsonl
"""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta

BEGIN = datetime(2025, 3, 3, 8, tzinfo=UTC)


def main() -> None:
    draw = random.Random(7)
    moments: list[tuple[float, str, dict[str, object]]] = []
    for second in range(3600):
        machine = f"m{draw.randrange(5)}"
        hot = machine == "m3" and 1200 < second < 1300
        celsius = draw.uniform(96, 99) if hot else draw.uniform(60, 94)
        moments.append((second, "Reading", {"machine": machine, "celsius": round(celsius, 1)}))
        if second % 7 == 0:
            kind = "Refused" if draw.random() < 0.05 else "Entered"
            user = draw.choice(["ann", "ben", "eve", "joe"])
            moments.append((second + 0.1, kind, {"user": user, "door": f"d{draw.randrange(3)}"}))
        if second % 600 == 0:
            stopped = {"machine": f"m{draw.randrange(3)}", "by": "joe"}
            moments.append((second + 0.2, "Stopped", stopped))
    eve = {"user": "eve", "door": "d1"}
    moments.extend((2000.3 + number, "Refused", dict(eve)) for number in range(3))
    moments.append((2004.3, "Entered", dict(eve)))
    moments.append((2030.4, "Override", {"user": "eve", "machine": "m1"}))
    moments.append((1400.4, "Override", {"user": "joe", "machine": "m3"}))
    for number, (second, kind, data) in enumerate(sorted(moments, key=lambda each: each[0]), 1):
        time = (BEGIN + timedelta(seconds=second)).isoformat().replace("+00:00", "Z")
        event = {"id": str(number), "source": "plant", "type": kind, "time": time, "data": data}
        print(json.dumps(event))


if __name__ == "__main__":
    main()
