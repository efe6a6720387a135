"""The tables of the public scripts: same results, overhead, alarms, planted faults."""

from __future__ import annotations

import re
import statistics
from typing import Any

from evidence.rows import print_table
from evidence.scripts_faults import FAULTS
from evidence.scripts_list import HALVES, Script

Results = dict[str, dict[str, Any]]
# Faults after which the loss is of the same rows by the same function: it tells whether they hurt.
OF_THE_LOSS = (
    *("rate_high", "rate_low", "decay", "other_parameters", "frozen", "zero_weights"),
    *("large_weights", "low_biases", "dropout", "no_activation", "detached"),
)
AS_GOOD = 1.05  # last loss over that of the script as it is
AS_MUCH = 0.01  # or what it is above that, over what the script as it is has learnt
TIME = re.compile(r"\d[\d.:]*\s?(?:ms|m|s|sec|secs|seconds)\b")


def report(found: list[Script], results: Results) -> None:
    """Print everything, each half by itself."""
    for runs in results.values():
        if "scan" in runs:
            runs.setdefault("plain", runs["scan"])
    for half in HALVES:
        ran = [one for one in found if one.half == half and "doctor" in results.get(one.name, {})]
        if ran:
            _half(half, ran, results)


def _half(half: str, ran: list[Script], results: Results) -> None:
    fit = [one for one in ran if _is_repeatable(results[one.name])]
    rows = [_row(one, results[one.name]) for one in ran]
    columns = ["script", "kind", "s", "with", "same", "alarms", "planted: said first"]
    print_table(f"{half}: {len(ran)} scripts", columns, rows)
    same = [one for one in fit if is_same(results[one.name])]
    alarmed = [one for one in fit if alarms(one, results[one.name])]
    planted = [(one, name) for one in fit for name in _planted(one, results[one.name])]
    first = [pair for pair in planted if is_first(*pair, results)]
    harmless = sum(len(_done(results[one.name])) for one in fit) - len(planted)
    somewhere = [pair for pair in planted if is_anywhere(*pair, results)]
    whole = [one for one in fit if results[one.name]["doctor"]["code"] == 0]
    times = [[results[one.name][what]["cpu"] for what in ("plain", "doctor")] for one in whole]
    more = [watched - plain for plain, watched in times]
    share = [(watched - plain) / plain for plain, watched in times]
    summary = [
        ["scripts that run and repeat themselves", f"{len(fit)} of {len(ran)}"],
        ["same results with the doctor", f"{len(same)} of {len(fit)}"],
        ["false alarms", f"{len(alarmed)} of {len(fit)}"],
        ["planted faults named first", _share(len(first), len(planted))],
        ["planted faults named at any rank", _share(len(somewhere), len(planted))],
        ["planted without effect or harm, not counted", str(harmless)],
        ["processor seconds more, median and most", _spread(more, " s")],
        ["processor time more, median and most", _spread([100 * s for s in share], " %")],
    ]
    print_table(f"{half} in short", ["figure", "value"], summary)
    _by_fault(half, planted, results)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / max(whole, 1):.0%})"


def _spread(values: list[float], unit: str) -> str:
    return f"{statistics.median(values):.1f}{unit}, {max(values):.1f}{unit}" if values else ""


def _is_repeatable(runs: dict[str, Any]) -> bool:
    """Whether the script runs, and trains the same numbers twice without the doctor."""
    plain, scan = runs.get("plain", {}), runs.get("scan", {})
    same = plain.get("weights") == scan.get("weights")
    return plain.get("code") == 0 and scan.get("code") == 0 and same


def is_same(runs: dict[str, Any]) -> bool:
    """Whether the doctor left alone what is printed and trained.

    Times, and other words that differ between two runs without the doctor, are not compared.
    """
    plain, scan, doctor = (runs[what] for what in ("plain", "scan", "doctor"))
    if doctor["code"] != 0 or doctor.get("weights") != plain.get("weights"):
        return False
    a, b, c = (TIME.sub("", one["out"]).split() for one in (plain, scan, doctor))
    if not len(a) == len(b) == len(c):
        return False
    return all(x == z or x != y for x, y, z in zip(a, b, c, strict=True))


def alarms(script: Script, runs: dict[str, Any]) -> list[str]:
    """Return the errors and warnings that nobody judged right."""
    said = runs["doctor"].get("findings", [])
    return [f["code"] for f in said if f["severity"] != "info" and f["code"] not in script.fine]


def _planted(script: Script, runs: dict[str, Any]) -> list[str]:
    """Return the faults that were planted and did harm; none where nothing goes backward."""
    if not runs["scan"].get("losses"):
        return []
    ran = [name for name in _done(runs) if not script.faults.get(name, "").startswith("none")]
    return [name for name in ran if not _is_harmless(name, runs)]


def _done(runs: dict[str, Any]) -> list[str]:
    done = [name for name in FAULTS if "findings" in runs.get(name, {})]
    return [name for name in done if runs[name]["code"] == 0 or FAULTS[name].fatal]


def _is_harmless(name: str, runs: dict[str, Any]) -> bool:
    """Whether the script trains the very same numbers with the fault, or as low a loss.

    Some draw others in the scan: they are compared with the doctor's run of the script as it is.
    """
    fine, faulty = runs["scan"], runs[name]
    as_it_is = [runs[what].get("weights") for what in ("scan", "doctor")]
    if name != "leak" and faulty["code"] == 0 and faulty.get("weights") in as_it_is:
        return True
    if name not in OF_THE_LOSS or not fine.get("losses"):
        return False
    best, end = (_end(one.get("losses", [])) for one in (fine, faulty))
    learnt = fine["losses"][0] - best
    if best > 0 and (end <= AS_GOOD * best or end - best <= AS_MUCH * learnt):
        return True
    return abs(end - best) <= AS_MUCH * abs(learnt)  # lower is not better in a game


def _end(losses: list[float]) -> float:
    """Return the mean of the last tenth; NaN of none."""
    last = losses[-max(5, len(losses) // 10) :]
    return statistics.fmean(last) if last else float("nan")


def is_first(script: Script, name: str, results: Results) -> bool:
    """Whether the diagnosis leads with a planted fault."""
    return first_of(script, name, results[script.name][name]) in _right(script, name)


def first_of(script: Script, name: str, run: dict[str, Any]) -> str:
    """Return what a diagnosis leads with, faults that the script itself has set aside.

    Causes come before what is a symptom of the script's own faults.
    """
    own = set(script.fine) - set(_right(script, name))
    causes = [f["code"] for f in run["findings"] if f["severity"] != "info"]
    return next((code for code in (*causes, *run["codes"]) if code not in own), "nothing")


def is_anywhere(script: Script, name: str, results: Results) -> bool:
    """Whether a planted fault is among the causes and symptoms."""
    return bool(set(results[script.name][name]["codes"]) & set(_right(script, name)))


def _right(script: Script, name: str) -> tuple[str, ...]:
    own = [word.strip(":,") for word in script.faults.get(name, "").split()]
    return (*FAULTS[name].right, *(word for word in own if word.startswith("CST")))


def _row(script: Script, runs: dict[str, Any]) -> list[str]:
    plain, doctor = runs["plain"], runs["doctor"]
    same = ("yes" if is_same(runs) else "no") if _is_repeatable(runs) else "—"
    said = [
        f"{name}: {first_of(script, name, runs[name])}"
        + ("" if is_first(script, name, {script.name: runs}) else " ✗")
        for name in _planted(script, runs)
    ]
    seconds = [f"{one.get('cpu', 0):.1f}" for one in (plain, doctor)]
    return [
        script.name,
        script.kind,
        *seconds,
        same,
        ", ".join(alarms(script, runs)),
        "; ".join(said),
    ]


def _by_fault(half: str, planted: list[tuple[Script, str]], results: Results) -> None:
    rows = []
    for name, fault in FAULTS.items():
        mine = [pair for pair in planted if pair[1] == name]
        if mine:
            first = sum(is_first(*pair, results) for pair in mine)
            missed = [(s, n) for s, n in mine if not is_first(s, n, results)]
            wrong = [first_of(s, n, results[s.name][n]) for s, n in missed]
            any_rank = sum(is_anywhere(*pair, results) for pair in mine)
            row = [fault.words, str(len(mine)), str(first), str(any_rank), ", ".join(wrong)]
            rows.append(row)
    columns = ["planted", "n", "first", "at any rank", "said first instead"]
    print_table(f"{half}: faults", columns, rows)
