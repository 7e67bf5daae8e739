"""Reports as tables of text, at most 80 columns wide; what is coloured is the caller's business."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ensue_bench.report import Curve, Figure, Report, spread

Row = tuple[str, ...]


def figure_row(figure: Figure) -> Row:
    """Name, median, spread, aim, and whether it is met."""
    aim = ""
    if figure.aim is not None:
        sign = "≥" if figure.better == "higher" else "≤"
        aim = f"{sign} {quantity(figure.aim, figure.unit)}"
    met = {None: "", True: "met", False: "missed"}[figure.is_met]
    return (
        figure.name,
        quantity(figure.median, figure.unit),
        f"±{spread(figure.values) / 2:.0%}" if len(figure.values) > 1 else "",
        aim,
        met,
    )


FIGURE_HEAD = ("figure", "median", "spread", "aim", "")


def quantity(value: float, unit: str) -> str:
    """A number with its unit, in at most four digits where that makes sense."""
    if unit == "events/s":
        for size, letter in ((1e6, "M"), (1e3, "k")):
            if value >= size:
                return f"{value / size:.3g} {letter}/s"
        return f"{value:.3g}/s"
    if unit == "times":
        return f"{value:.3g}×"
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def lines_of(head: Row, rows: Sequence[Row]) -> Iterator[str]:
    """Aligned columns: names to the left, all else to the right but the last."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    last = len(head) - 1
    for row in (head, *rows):
        cells = [
            cell.ljust(width) if column in (0, last) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def tables_of(report: Report) -> Iterator[str]:
    """The whole report, as lines."""
    if report.figures:
        yield from lines_of(FIGURE_HEAD, [figure_row(each) for each in report.figures])
    for table in report.tables:
        yield ""
        yield table.name
        yield from lines_of((*table.head, ""), [(*row, "") for row in table.rows])
    plots = dict.fromkeys(each.plot for each in report.curves)
    for number, plot in enumerate(plots):
        if number or report.figures:
            yield ""
        yield from _plot_lines([each for each in report.curves if each.plot == plot])


def _plot_lines(curves: Sequence[Curve]) -> Iterator[str]:
    """Every point of the curves of one plot, a row a size; below them the slopes."""
    sizes = sorted({size for curve in curves for size, _ in curve.points})
    yield f"{curves[0].plot}, {curves[0].unit}"
    head = (f"  {curves[0].against}", *(curve.name for curve in curves), "")
    rows: list[Row] = []
    for size in sizes:
        found = [dict(curve.medians).get(size) for curve in curves]
        cells = ("" if each is None else f"{each:.3g}" for each in found)
        rows.append((f"  {size:,.0f}", *cells, ""))
    rows.append(("  slope", *(f"{curve.slope:.2f}" for curve in curves), ""))
    rows.append(("  slope, upper half", *(f"{curve.upper_slope:.2f}" for curve in curves), ""))
    verdicts = ("yes" if curve.is_linear_or_better else "no" for curve in curves)
    rows.append(("  linear or better", *verdicts, ""))
    yield from lines_of(head, rows)
