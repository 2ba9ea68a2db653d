"""Reports as pandas DataFrames: `pip install pandas`, or the extra `hetero[pandas]`."""

from __future__ import annotations

import json
import os
import pathlib
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Sequence, Tuple, Union

from .errors import MisuseError

if TYPE_CHECKING:
    from pandas import DataFrame

Report = Union[Mapping[str, Any], str, "os.PathLike[str]"]
Row = Dict[str, Any]

# What docs/report.md says of each list: such a column is there even when no row has it, or there is no row.
COLUMNS: Mapping[str, Sequence[str]] = {
    "attempts": ("attempt", "time", "seconds", "cause"),
    "batchLives": ("span", "count", "p50", "p90", "p95", "p99"),
    "badSampleList": ("sampleId", "replacementId", "reason"),
    "disruptions": ("time", "member", "sign", "checkpointSeconds", "checkpointStep"),
    "evaluations": ("epoch", "step", "loss", "accuracy", "samples"),
    "faults": ("time", "what", "recoverySeconds"),
    "findings": ("rule", "message", "remedy", "field", "member", "seconds", "dollars", "since", "active"),
    "lossCurve": ("step", "loss", "secondsPerStep"),
    "placement": (
        "op",
        "function",
        "where",
        "reason",
        "workerSeconds",
        "pythonSeconds",
        "trainerSeconds",
        "bytesIn",
        "bytesOut",
    ),
    "predictions": ("role", "replicas", "samplesPerSecond", "dollarsPer1000Steps"),
    "resources": (
        *("member", "role", "index", "seconds", "cores", "busyCoresMedian", "busyCoresP95", "runQueueSeconds"),
        *("throttledSeconds", "peakRssBytes", "majorFaults", "diskReadBytes", "diskWrittenBytes", "receivedBytes"),
        *("sentBytes", "gpuUtilization"),
    ),
    "resources.timeLine": (
        *("member", "seconds", "span", "rssBytes", "runQueueSeconds", "machineBusyCores", "gpuUtilization"),
    ),
    "roles": ("name", "type", "replicas", "cpuSecondsPerSample", "version"),
    "storage.orders": ("shuffle", "requests", "bytes", "dollars"),
    "timeLines": ("rank", "step", "seconds"),
    "workers": (
        *("name", "role", "index", "node", "batches", "samples", "bytes", "dataWaitPercent"),
        *("cpuSeconds", "peakRssBytes", "storageRequests", "storageBytes", "restarts"),
    ),
}
_TIMES = ("time", "since")  # the columns with moments, RFC 3339 in UTC


def frames(report: Report) -> Mapping[str, DataFrame]:
    """One frame for each list of a report, by its name there, and `job`, a row of all that is no list.

    `report`: what run_local() and report() return, or the path of a report.json. Names of fields inside fields are
    joined by a dot: `phaseSeconds.wait`, the frame `storage.orders`. `timeLines` and `resources.timeLine` have a row
    for each point, `roles` what the report says by role. What was not measured is NaN; what the manifest says besides
    is in report["config"].
    """
    try:
        import pandas
    except ImportError:
        raise MisuseError("pandas is missing: pip install pandas (the extra hetero[pandas])") from None
    made = {}
    for name, (columns, rows) in tables(_read(report)).items():
        frame = pandas.DataFrame([[row.get(column) for column in columns] for row in rows], columns=columns)
        for column in set(_TIMES).intersection(columns):
            frame[column] = pandas.to_datetime(frame[column], utc=True, format="ISO8601")
        made[name] = frame
    return made


def tables(report: Mapping[str, Any]) -> Dict[str, Tuple[List[str], List[Row]]]:
    """Columns and rows of each frame, without pandas."""
    job: Row = {}
    lists: Dict[str, List[Row]] = {name: [] for name in COLUMNS}
    for name, value in report.items():
        if name == "config":
            continue
        for path, part in _parts(name, value):
            if _is_table(part):
                lists[path] = [line for entry in part for line in _lines(entry)]
                if path == "resources":
                    lists["resources.timeLine"] = [line for entry in part for line in _time_line(entry)]
            elif path not in COLUMNS:
                job[path] = part
    lists["roles"] = _roles(report)
    return {"job": (list(job), [job]), **{name: (_columns(name, rows), rows) for name, rows in lists.items()}}


def _read(report: Report) -> Mapping[str, Any]:
    if isinstance(report, Mapping):
        return report
    try:
        read = json.loads(pathlib.Path(report).read_text())
    except (OSError, ValueError) as error:
        raise MisuseError(f"cannot read the report {os.fspath(report)!r}: {error}") from None
    if not isinstance(read, dict):
        raise MisuseError(f"{os.fspath(report)!r} is no report: it is no JSON object")
    return read


def _parts(path: str, value: Any) -> Iterator[Tuple[str, Any]]:
    """A value, or those of an object with their paths."""
    if not isinstance(value, Mapping):
        yield path, value
        return
    for name, inner in value.items():
        yield from _parts(f"{path}.{name}", inner)


def _is_table(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _lines(entry: Mapping[str, Any]) -> Iterator[Row]:
    """The rows of an object in a list: one, or one for each point of a time line, beside what they share."""
    row = {path: part for name, value in entry.items() for path, part in _parts(name, value)}
    row.pop("timeLine", None)  # a frame of its own
    points = row.pop("points", None)
    if points is None:
        yield row
        return
    for point in points:
        yield {**row, **dict(part for name, value in point.items() for part in _parts(name, value))}


def _time_line(entry: Mapping[str, Any]) -> Iterator[Row]:
    return _lines({"member": entry.get("member"), "points": entry.get("timeLine", [])})


def _roles(report: Mapping[str, Any]) -> List[Row]:
    """Roles of the manifest, and what the report says of each by its name."""
    declared = report.get("config", {}).get("spec", {}).get("roles", [])
    seconds, versions = report.get("cpuSecondsPerSample", {}), report.get("versions", {})
    rows = []
    for role in declared:
        row = {path: part for name, value in role.items() if name != "template" for path, part in _parts(name, value)}
        for name, found in (("cpuSecondsPerSample", seconds), ("version", versions)):
            if role["name"] in found:
                row[name] = found[role["name"]]
        rows.append(row)
    return rows


def _columns(name: str, rows: Sequence[Row]) -> List[str]:
    """The documented ones first, then others in the order of their appearance."""
    return list(dict.fromkeys([*COLUMNS.get(name, ()), *(column for row in rows for column in row)]))
