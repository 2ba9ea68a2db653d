"""tests/bench/gpu/day.py with steps of the test's own, which pass, fail, hang and cannot run; its budget and its table."""

import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(SOURCE / "tests/bench/gpu"))

import day  # noqa: E402
from day_budget import Allotment, allot, shortened  # noqa: E402
from day_steps import Step, plan, tests_of  # noqa: E402
from day_table import same_digests, table  # noqa: E402


def step(name, script="", wants=30.0, least=0.1, **options):
    """A step that is a script of the shell, with the file of its figures as $1."""
    return Step(name, f"what {name} does", wants, least, lambda scale, figures: ["bash", "-c", script, name, figures],
                **options)


def reference(digest, name="BF16-0-on", steps=300):
    figures = {"samplesPerSecond": 1452.4, "ceilingSamplesPerSecond": 1734, "dataWaitPercent": 16.2, "gpuCores": 4,
               "workers": 0, "workerCores": 0, "steps": steps, "streamDigest": digest}
    return {"step": f"reference/{name}", "what": "blurs", "state": "passed", "seconds": 31.2, "figures": figures}


class Budget(unittest.TestCase):
    def test_with_time_enough_a_step_may_take_three_times_what_it_wants(self):
        self.assertEqual(allot(step("a", wants=10), [step("b", wants=10)], 100), Allotment(30, 1))

    def test_a_step_leaves_the_least_of_those_behind_it(self):
        found = allot(step("a", wants=100), [step("b", wants=100, least=40)], 220)
        self.assertEqual(found, Allotment(180, 1))

    def test_in_short_time_all_are_shortened_alike(self):
        found = allot(step("a", wants=100), [step("b", wants=100, least=1)], 50)
        self.assertEqual(found, Allotment(49, 0.25))

    def test_the_first_is_not_given_up_for_the_later(self):
        self.assertEqual(allot(step("a", least=20), [step("b", least=20)], 30).deadline, 20)
        self.assertIsNone(allot(step("b", least=20), [], 10))

    def test_lengths_have_a_least(self):
        self.assertEqual([shortened(300, 1, 20), shortened(300, 0.5, 20), shortened(300, 0.01, 20)], [300, 150, 20])


class Table(unittest.TestCase):
    DAY = {"commit": "abc", "gpu": "H100", "cores": 16, "rehearsal": False, "date": "today"}

    def test_a_line_for_each_kind_of_step(self):
        records = [
            {"step": "tests", "what": "ctest", "state": "FAILED", "reason": "exit code 8", "seconds": 3.4, "scale": 1,
             "figures": {"tests": [{"state": "passed"}, {"state": "failed"}]}, "tail": ["kernel | differs"]},
            {"step": "train_step/resnet18", "what": "a step", "state": "passed", "seconds": 60, "scale": 0.5,
             "figures": {"seconds": 0.0212, "pythonSeconds": 0.0234, "batch": 128, "ratio": 0.9061,
                         "interval": [0.9, 0.92]}},
            reference("d1"),
            {"step": "script/blur", "what": "script", "state": "passed", "seconds": 70, "figures": {
                "hetero": 1674, "dataLoader": 160, "ceiling": 1793, "loaderProcesses": 16}},
            {"step": "setup", "what": "set-up", "state": "NO TIME", "reason": "3 s | left"},
        ]
        lines = table(records, self.DAY).splitlines()
        self.assertIn("| tests | ctest | FAILED | 1 of 2 passed | 3 | exit code 8 |", lines)
        self.assertIn("| train_step/resnet18 | a step | passed | 0.0212 s a step of 128, PyTorch 0.0234 s; ratio 0.906 "
                      "[0.900, 0.920] | 60 | SHORTENED to 50 % |", lines)
        self.assertIn("| reference/BF16-0-on | blurs | passed | 1452 samples/s, 0.838 of the ceiling 1734, 16.2 % "
                      "waiting, 4 cores | 31 |  |", lines)
        self.assertIn("| script/blur | script | passed | hetero.Stream 1674 samples/s, DataLoader of 16 160; ratio "
                      "10.46; 0.934 of 1793 without input | 70 |  |", lines)
        self.assertIn("| setup | set-up | NO TIME |  |  | 3 s \\| left |", lines)
        self.assertIn("1 FAILED, 3 passed, 1 NO TIME.", lines)
        self.assertIn("kernel | differs", lines)

    def test_streams_that_differ_are_a_failure(self):
        self.assertIsNone(same_digests([reference("d1")]))
        self.assertEqual(same_digests([reference("d1"), reference("d1", "b")])["state"], "passed")
        # Another number of steps is another stream.
        self.assertEqual(same_digests([reference("d1"), reference("d2", "b", 20)])["state"], "passed")
        different = same_digests([reference("d1"), reference("d2", "b")])
        self.assertEqual(different["state"], "FAILED")
        self.assertIn("d2 (reference/b)", different["reason"])
        self.assertEqual(same_digests([reference(None), reference(None, "b")])["state"], "FAILED")

    def test_what_ctest_and_pytest_write(self):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place) / "junit"
            path.write_text('<testsuite><testcase name="a" time="1.5" status="run"/><testcase name="b" status="notrun">'
                            '<skipped message="SKIP_RETURN_CODE=77"/></testcase></testsuite>')
            self.assertEqual(tests_of(path)["tests"][0], {"name": "a", "state": "passed", "seconds": 1.5})
            self.assertEqual(tests_of(path)["notRun"], "b")
            path.write_text('<testsuites><testsuite><testcase name="c"><failure/></testcase></testsuite></testsuites>')
            self.assertEqual(tests_of(path), {"tests": [{"name": "c", "state": "failed", "seconds": 0}]})
            path.write_text("<testsuite/>")
            self.assertIn("no such test", tests_of(path)["notRun"])


def runs(command):
    """Whether a process has this command line."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().split(b"\0")[:-1] == command.encode().split(b" "):
                return True
        except OSError:
            continue
    return False


class Day(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)

    def run_day(self, steps, *arguments, commit="c1"):
        """The exit code and what was printed."""
        words = ["day.py", "--output", str(self.folder), "--commit", commit, *arguments]
        printed = io.StringIO()
        with mock.patch.object(day, "plan", lambda options: steps), mock.patch.object(sys, "argv", words), \
                mock.patch.object(day, "gpu_of_this_machine", lambda: "H100"), contextlib.redirect_stdout(printed):
            return day.main(), printed.getvalue()

    def states(self):
        return {record["step"]: record for record in json.loads((self.folder / "gpu-day.json").read_text())["steps"]}

    def test_one_that_fails_or_hangs_does_not_end_the_others(self):
        asleep = f"sleep 987.{os.getpid()}"
        steps = [
            step("tests", "echo first; echo last; exit 3"),
            # It ignores SIGTERM, and its child has left the process group.
            step("reference/a", f"trap '' TERM; setsid {asleep} & touch {self.folder}/begun; {asleep}", wants=0.5),
            step("script/a", "echo NOT RUN: no PyTorch; exit 77"),
            step("train_step/a", needs=(pathlib.Path("/nowhere/train_step"),), remedy="build it"),
            step("python_tests", "true"),
        ]
        with mock.patch.object(day, "GRACE", 0.3):
            begin = time.monotonic()
            code, printed = self.run_day(steps)
        self.assertLess(time.monotonic() - begin, 60)
        self.assertTrue((self.folder / "begun").exists())
        self.assertEqual(code, 1)
        found = self.states()
        self.assertEqual([found[name.name]["state"] for name in steps],
                         ["FAILED", "FAILED", "NOT RUN", "NOT RUN", "passed"])
        self.assertEqual((found["tests"]["reason"], found["tests"]["tail"]), ("exit code 3", ["first", "last"]))
        self.assertIn("not done within", found["reference/a"]["reason"])
        self.assertEqual(found["script/a"]["reason"], "NOT RUN: no PyTorch")
        self.assertEqual(found["train_step/a"]["reason"], "/nowhere/train_step is not there: build it")
        self.assertIn("    | last", printed)
        self.assertFalse(runs(asleep))

    def test_a_later_call_goes_on(self):
        counted = f"echo x >> {self.folder}/a; true"
        steps = [step("tests", counted), step("script/a", f"test -e {self.folder}/well")]
        self.assertEqual(self.run_day(steps)[0], 1)
        (self.folder / "well").touch()
        code, printed = self.run_day(steps)
        self.assertEqual(code, 0)
        self.assertIn("kept: tests", printed)
        self.assertEqual((self.folder / "a").read_text(), "x\n")
        self.run_day(steps, "--fresh")
        self.run_day(steps, commit="c2")
        self.assertEqual((self.folder / "a").read_text(), "x\nx\nx\n")

    def test_what_a_kept_step_gave_must_be_there(self):
        product = self.folder / "product"
        steps = [step("setup", f"touch {product}", gives=(product,))]
        self.run_day(steps)
        product.unlink()
        self.run_day(steps)
        self.assertTrue(product.exists())

    def test_chosen_steps_alone(self):
        steps = [step("setup"), step("tests", "true"), step("reference/a", "true")]
        self.assertEqual(self.run_day(steps, "--steps", "reference")[0], 0)
        self.assertEqual({name: record["state"] for name, record in self.states().items()},
                         {"setup": "NOT RUN", "tests": "NOT RUN", "reference/a": "passed"})
        with self.assertRaisesRegex(SystemExit, "no step nothing: use reference, reference/a, setup, tests"):
            self.run_day(steps, "--steps", "nothing")

    def test_no_time_is_said(self):
        code, printed = self.run_day([step("tests", "true", least=120)], "--minutes", "1")
        self.assertEqual(code, 1)
        self.assertIn("tests: NO TIME; 60 s left, it takes 120 at least", printed)

    def test_figures_that_are_not_there(self):
        steps = [step("script/a", "true", read=lambda path: json.loads(path.read_text()))]
        self.assertEqual(self.run_day(steps)[0], 1)
        self.assertIn("it has left no figures", self.states()["script/a"]["reason"])

    def test_what_is_not_run_is_no_success_but_in_a_rehearsal(self):
        self.assertEqual(self.run_day([step("tests", "exit 77")])[0], 1)
        self.assertEqual(self.run_day([step("tests", "exit 77")], "--rehearse")[0], 0)
        self.assertEqual(self.run_day([step("tests", "exit 1")], "--rehearse")[0], 1)


class Plan(unittest.TestCase):
    def test_all_of_it_fits_into_forty_minutes(self):
        options = mock.Mock(build=pathlib.Path("/build"), python="python3", gpu_cores=4, rehearse=False)
        steps = plan(options)
        self.assertLess(sum(step.wants for step in steps), 40 * 60)
        for one in steps:
            self.assertTrue(all(isinstance(word, (str, int, pathlib.Path)) for word in one.command(1, "figures")))
        names = [one.name for one in steps]
        self.assertEqual(len(names), len(set(names)))
        for model in ("resnet18", "resnet50", "vit_b_16"):
            self.assertIn(f"train_step/{model}", names)
        for workers in (0, 1, 2):
            for own_cores in ("on", "off"):
                self.assertIn(f"reference/BF16-{workers}-{own_cores}", names)


if __name__ == "__main__":
    unittest.main()
