"""Writes the expected texts of the gallery anew, after a message was changed on purpose:

    python -m tests.lang.regenerate_gallery

Then read the difference as the person who made the mistake would: does it point at the mistake,
and does it say what to do?
"""

from __future__ import annotations

from tests.lang.gallery_texts import libraries, report_on


def main() -> None:
    for library in libraries():
        expected = library.with_suffix(".txt")
        report = report_on(library)
        if not expected.exists() or expected.read_text("utf-8") != report:
            expected.write_text(report, "utf-8")
            print(f"wrote {expected.name}")


if __name__ == "__main__":
    main()
