"""The steps of a day on a machine with one GPU: what each runs, how long it takes, and where its figures are."""

import dataclasses
import json
import pathlib
import typing
import xml.etree.ElementTree

from day_budget import shortened
from day_records import NOT_RUN

SOURCE = pathlib.Path(__file__).resolve().parents[3]
BENCH = SOURCE / "tests/bench"
MODELS = ("resnet18", "resnet50", "vit_b_16")
NOT_RUN_CODE = 77
SET_UP = "scripts/gpu_day.sh --steps setup builds it"


@dataclasses.dataclass(frozen=True)
class Step:
    """`command(scale, figures)` gives the words of a program that leaves its figures in that file."""

    name: str  # the group, then "/" and which of it
    what: str
    wants: float  # seconds that it usually takes
    least: float  # with fewer it is not begun
    command: typing.Callable
    read: typing.Callable = lambda path: None  # the figures' file; a figure "notRun" says why nothing was
    needs: tuple = ()  # programs without which it is not run
    remedy: str = SET_UP
    gives: tuple = ()  # what a result kept from an earlier call is worth nothing without


def tests_of(path):
    """What a JUnit file says of each test; ctest writes `status`, pytest the elements alone."""
    tests = []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        skipped = case.find("skipped") is not None or case.get("status") in ("notrun", "disabled")
        failed = case.find("failure") is not None or case.find("error") is not None
        state = "failed" if failed else "not run" if skipped else "passed"
        tests.append({"name": case.get("name"), "state": state, "seconds": float(case.get("time") or 0)})
    figures = {"tests": tests}
    if not tests:
        figures["notRun"] = f"there is no such test in this build: {SET_UP}"
    elif idle := [test["name"] for test in tests if test["state"] == "not run"]:
        figures["notRun"] = ", ".join(idle)
    return figures


def first_of(path):
    return json.loads(path.read_text())[0]


def plan(options):
    """All steps in order. `options`: build, python, rehearse, gpu_cores, jobs."""
    steps = [_setup(options), *_tests(options)]
    steps += [_train_step(options, model) for model in (MODELS[:1] if options.rehearse else MODELS)]
    for precision in ("BF16",) if options.rehearse else ("BF16", "FP32"):
        for workers in (0, 1, 2):
            steps += [_reference(options, precision, workers, own) for own in ("on", "off")]
    return steps + [_script(options, pipeline) for pipeline in ("imagenet", "blur")]


def _programs(options):
    trainer = "bin/hetero-trainer" if options.rehearse else "bin/cuda/hetero-trainer"
    return (options.build / "bin/hetero-runtime", options.build / trainer)


def _setup(options):
    return Step(
        "setup",
        "what running on a GPU needs, and the programs",
        wants=900,
        least=60,
        command=lambda scale, figures: [SOURCE / "scripts/cuda.sh", "--build", options.build],
        gives=(options.build / "bin/cuda/hetero-trainer", options.build / "tests/train_step_cuda"),
    )


def _tests(options):
    ctest = ["ctest", "--test-dir", options.build, "-L", "^gpu$", "-E", "^python_gpu$", "--output-on-failure"]
    return (
        Step(
            "tests",
            "ctest -L gpu, but for python_gpu",
            wants=20 if options.rehearse else 120,
            least=5 if options.rehearse else 30,
            command=lambda scale, figures: [*ctest, "--no-tests=ignore", "--output-junit", figures],
            read=tests_of,
            needs=(options.build / "CTestTestfile.cmake",),
        ),
        Step(
            "python_tests",
            "tests/python/run gpu",
            wants=20 if options.rehearse else 120,
            least=5 if options.rehearse else 30,
            command=lambda scale, figures: [SOURCE / "tests/python/run", "gpu", f"--junitxml={figures}"],
            read=tests_of,
            needs=(options.build / "bin/hetero-runtime",),
        ),
    )


def _train_step(options, model):
    program = options.build / ("tests/train_step" if options.rehearse else "tests/train_step_cuda")

    def command(scale, figures):
        words = [options.python, BENCH / "train_step/compare.py", program, model, "--json", figures]
        if options.rehearse:
            return [*words, "--pairs", 1, "--side", 32, "--batch", 2]
        return [*words, "--device", "cuda", "--pairs", shortened(12, scale, 3)]

    return Step(
        f"train_step/{model}",
        f"a training step of {model} beside PyTorch's",
        wants=15 if options.rehearse else 75,
        least=5 if options.rehearse else 30,
        command=command,
        read=first_of,
        needs=(program,),
        remedy=f"ninja -C {options.build} train_step builds it" if options.rehearse else SET_UP,
    )


def _reference(options, precision, workers, own_cores):
    usual = 4 if options.rehearse else {"BF16": 300, "FP32": 80}[precision]

    def command(scale, figures):
        words = [options.python, BENCH / "gpu/vit_blur.py", "--workers", workers, "--own-cores", own_cores]
        words += ["--precision", precision, "--steps", shortened(usual, scale, min(usual, 20)), "--json", figures]
        words += ["--gpu-cores", options.gpu_cores]
        return [*words, "--small"] if options.rehearse else words

    return Step(
        f"reference/{precision}-{workers}-{own_cores}",
        f"ViT-B/16 behind ten blurs, {precision}, {workers} CPU workers, own cores {own_cores}",
        wants=10 if options.rehearse else 45,
        least=5 if options.rehearse else 25,
        command=command,
        read=first_of,
        needs=_programs(options),
    )


def _script(options, pipeline):
    def command(scale, figures):
        words = [options.python, BENCH / "gpu/loader.py", "--pipeline", pipeline, "--json", figures]
        if options.rehearse:
            return [*words, "--steps", 5, "--workers", 1, "--small"]
        return [*words, "--steps", shortened(40, scale, 10)]

    return Step(
        f"script/{pipeline}",
        f"torchvision's ViT-B/16 in a script beside a DataLoader, {pipeline}",
        wants=60 if options.rehearse else 90,  # a rehearsal mostly imports PyTorch
        least=10 if options.rehearse else 40,
        command=command,
        read=first_of,
        needs=_programs(options)[:1],
    )


def not_run(step):
    """Why a step cannot run here, or None."""
    missing = [str(path) for path in step.needs if not path.exists()]
    return f"{', '.join(missing)} is not there: {step.remedy}" if missing else None


def judged(step, record, figures):
    """`record` with what the step has left; what was not run is no success."""
    if record["state"] == NOT_RUN:
        return record
    try:
        found = step.read(figures)
    except (OSError, ValueError, LookupError, xml.etree.ElementTree.ParseError) as error:
        if record["state"] == "passed":
            return {**record, "state": "FAILED", "reason": f"it has left no figures: {error}"}
        return record
    idle = found.pop("notRun", None) if found else None
    record = {**record, "figures": found}
    if record["state"] == "passed" and idle:
        return {**record, "state": NOT_RUN, "reason": f"not run: {idle}"}
    return record
