"""Jobs on a cluster: against a real API server, in a control plane of its own (tests/cluster)."""

import copy
import json
import os
import subprocess
import sys
import time

import pytest
from conftest import JOB, SOURCE

import hetero

RUN = SOURCE / "tests/cluster/run"
INSIDE = "HETERO_TEST_CLUSTER_DIR" in os.environ

pytest.importorskip("kubernetes")


@pytest.mark.skipif(INSIDE, reason="is inside")
def test_in_a_cluster():
    if not (SOURCE / ".deps/cluster/bin/kube-apiserver").exists():
        pytest.skip("tests/cluster/build has not been run: no API server")
    command = [
        RUN,
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        SOURCE / "python",
        __file__,
    ]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    assert "skipped" in done.stdout and "passed" in done.stdout


inside = pytest.mark.skipif(not INSIDE, reason="test_in_a_cluster runs it")


def kubectl(*arguments):
    return subprocess.run(["kubectl", *map(str, arguments)], check=True, text=True, stdout=subprocess.PIPE).stdout


@pytest.fixture(scope="module", autouse=INSIDE)
def definition():
    kubectl("create", "-f", next((SOURCE / "crds").glob("*.yaml")))
    wait = ["wait", "--for=condition=Established", "crd/heterotrainingjobs.training.hetero.dev", "--timeout=30s"]
    for _ in range(20):  # kubectl does not wait for a definition that has no status yet: it fails
        if subprocess.run(["kubectl", *wait], check=False).returncode == 0:
            return
        time.sleep(0.5)
    kubectl(*wait)


def job(name):
    made = copy.deepcopy(JOB)
    made["metadata"]["name"] = name
    return made


def patch_status(name, **status):
    """What the operator would write; the API server checks it by the schema."""
    kubectl("patch", "htj", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))


def condition(kind, message, holds="True"):
    return {
        "type": kind,
        "status": holds,
        "reason": "Because",
        "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


@inside
def test_a_job_from_submit_to_report(tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text(json.dumps(job("well")))
    assert hetero.submit(path) == "well"
    now = hetero.status("well")
    assert (now.name, now.namespace, now.phase, now.finished) == ("well", "default", "", False)
    assert hetero.logs("well") == {}
    with pytest.raises(hetero.MisuseError, match="no result yet"):
        hetero.report("well")
    with pytest.raises(hetero.StreamTimeout, match="well has not ended"):
        hetero.wait("well", timeout=0)
    patch_status(
        "well",
        conditions=[condition("Restarting", "", "False"), condition("Running", "trains")],
        progress={"step": 3, "totalSteps": 9},
        restarts=2,
    )
    now = hetero.status("well")
    assert (now.phase, now.message, now.step, now.total_steps, now.restarts) == ("Running", "trains", 3, 9, 2)
    patch_status("well", conditions=[condition("Succeeded", "done")], result={"steps": 9, "streamDigest": "ab"})
    assert hetero.wait("well", timeout=10).finished
    assert hetero.report("well") == {"steps": 9, "streamDigest": "ab"}


@inside
def test_a_job_that_fails():
    hetero.submit(job("ill"), namespace="default")
    patch_status("ill", conditions=[condition("Failed", "script of rank 1 ended with exit code 3")])
    with pytest.raises(hetero.JobFailed, match="default/ill failed: script of rank 1"):
        hetero.wait("ill")


@inside
def test_refusals_have_the_servers_words():
    hetero.submit(job("twice"))
    with pytest.raises(hetero.HeteroError, match=r"cannot create the job: .*already exists"):
        hetero.submit(job("twice"))
    with pytest.raises(hetero.HeteroError, match=r"cannot get the job: .*not found"):
        hetero.status("nobody")
    bad = job("bad")
    bad["spec"]["training"]["batchSizePerWorker"] = 0
    with pytest.raises(hetero.HeteroError, match=r"batchSizePerWorker"):
        hetero.submit(bad)
    with pytest.raises(hetero.MisuseError, match="HeteroTrainingJob"):
        hetero.submit({"kind": "Job"})
    with pytest.raises(hetero.MisuseError, match="cannot read"):
        hetero.submit("/nowhere.yaml")


@inside
def test_logs_of_pods():
    hetero.submit(job("talks"))
    uid = json.loads(kubectl("get", "htj", "talks", "-o", "json"))["metadata"]["uid"]
    for index in range(2):
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"talks-cpu-{index}",
                "labels": {
                    "training.hetero.dev/job-uid": uid,
                    "training.hetero.dev/role": "cpu",
                    "training.hetero.dev/replica-index": str(index),
                },
            },
            "spec": {"containers": [{"name": "runtime", "image": "none"}], "nodeName": "nowhere"},
        }
        subprocess.run(["kubectl", "create", "-f", "-"], input=json.dumps(pod), text=True, check=True)
    assert hetero.logs("talks", role="gpu") == {}
    assert hetero.logs("talks") == {}  # pending: there is nothing to read yet


@inside
def test_without_a_cluster(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    code = "import hetero; hetero.status('x')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ, PYTHONPATH=str(SOURCE / "python")),
        text=True,
        capture_output=True,
        check=False,
    )
    assert "there is no cluster to talk to" in done.stderr
