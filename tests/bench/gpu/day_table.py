"""The table of a day: one line a step, whatever became of it."""

from day_records import FAILED, NOT_RUN, PASSED


def figures_of(record):
    """A step's figures in words."""
    figures = record.get("figures")
    if not figures:
        return ""
    return {
        "setup": lambda _: "",
        "tests": _tests,
        "python_tests": _tests,
        "train_step": _train_step,
        "reference": _reference,
        "script": _script,
    }[record["step"].split("/")[0]](figures)


def _tests(figures):
    passed = sum(test["state"] == "passed" for test in figures["tests"])
    return f"{passed} of {len(figures['tests'])} passed" if figures["tests"] else ""


def _train_step(figures):
    low, high = figures["interval"]
    return (
        f"{_number(figures['seconds'])} s a step of {figures['batch']}, PyTorch {_number(figures['pythonSeconds'])} s; "
        f"ratio {figures['ratio']:.3f} [{low:.3f}, {high:.3f}]"
    )


def _reference(figures):
    rate, ceiling, waits = (
        figures[name] for name in ("samplesPerSecond", "ceilingSamplesPerSecond", "dataWaitPercent")
    )
    words = [f"{_number(rate)} samples/s"]
    words += [f"{rate / ceiling:.3f} of the ceiling {_number(ceiling)}"] if rate and ceiling else []
    words += [f"{waits:.1f} % waiting"] if waits is not None else []
    words.append(f"{figures['gpuCores']} cores" + (f" and {figures['workerCores']}" if figures["workers"] else ""))
    return ", ".join(words)


def _script(figures):
    ours, theirs, ceiling = figures["hetero"], figures["dataLoader"], figures["ceiling"]
    return (
        f"hetero.Stream {_number(ours)} samples/s, DataLoader of {figures['loaderProcesses']} {_number(theirs)}; "
        f"ratio {ours / theirs:.2f}; {ours / ceiling:.3f} of {_number(ceiling)} without input"
    )


def _number(value):
    return "?" if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def same_digests(records):
    """A record that says whether all reference jobs of the same steps had the same stream; None without two of them."""
    digests = {}
    for record in records:
        figures = record.get("figures")
        if record["step"].startswith("reference/") and record["state"] == PASSED and figures:
            digests.setdefault(figures["steps"], {}).setdefault(figures["streamDigest"], []).append(record["step"])
    if sum(len(steps) for found in digests.values() for steps in found.values()) < 2:
        return None
    different = {steps: found for steps, found in digests.items() if len(found) > 1 or None in found}
    record = {
        "step": "reference digests",
        "what": "every job of the same steps has trained on the same stream",
        "state": FAILED if different else PASSED,
    }
    if different:
        record["reason"] = "; ".join(
            f"{steps} steps: " + ", ".join(f"{digest} ({' '.join(names)})" for digest, names in found.items())
            for steps, found in different.items()
        )
    return record


def _remark(record):
    words = [record["reason"]] if record.get("reason") else []
    if record.get("scale", 1) < 1:
        words.append(f"SHORTENED to {100 * record['scale']:.0f} %")
    return "; ".join(words)


def _cell(text):
    return " ".join(str(text).split()).replace("|", "\\|")


def table(records, day):
    """Markdown. `day`: {"commit", "gpu", "cores", "rehearsal", "date"}."""
    lines = ["# GPU day", ""]
    if day["rehearsal"]:
        lines += ["**A rehearsal without a GPU: no figure here means anything.**", ""]
    lines += [
        f"Commit {day['commit'] or 'unknown'}; {day['gpu'] or 'no GPU'}, {day['cores']} cores; {day['date']}.",
        "",
    ]
    lines += ["| step | what | result | figures | seconds | remarks |", "|---|---|---|---|---|---|"]
    for record in records:
        seconds = f"{record['seconds']:.0f}" if record.get("seconds") is not None else ""
        cells = (record["step"], record["what"], record["state"], figures_of(record), seconds, _remark(record))
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    counts = {}
    for record in records:
        counts[record["state"]] = counts.get(record["state"], 0) + 1
    lines += ["", ", ".join(f"{count} {state}" for state, count in counts.items()) + "."]
    for record in records:
        if record["state"] in (FAILED, NOT_RUN) and record.get("tail"):
            lines += ["", f"Last lines of {record['step']}:", "", "```", *record["tail"], "```"]
    return "\n".join(lines) + "\n"
