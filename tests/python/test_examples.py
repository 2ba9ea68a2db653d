"""The examples as they are, with fewer steps and a folder of their own for pictures and checkpoints."""

import copy
import os
import subprocess
import sys

import pytest
import torch
import yaml

from proof.job import PACKAGE, RUNTIME, SOURCE, LocalJob

EXAMPLES = SOURCE / "examples/pytorch"
SELF_SUPERVISED = {"simclr": 2, "dino": 2 + 4}  # and how many views of a picture


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures")
    subprocess.run(
        [RUNTIME, "make-dataset", "--format", "ImageFolder", "--classes", "10", "--samples", "300"]
        + ["--validation-samples", "41", "--size", "32", "--seed", "7", folder],
        check=True,
        capture_output=True,
    )
    return folder


def job(pictures, checkpoint, script="train.py", option="--checkpoint", **training):
    """The example's manifest: 5 steps an epoch, the last of them short."""
    made = yaml.safe_load((EXAMPLES / "job.yaml").read_text().replace("/tmp/pictures", str(pictures)))
    made["spec"]["training"]["script"] = {"command": [sys.executable, script, option, str(checkpoint)]}
    made["spec"]["training"]["script"]["workingDirectory"] = str(EXAMPLES)
    made["spec"]["training"].update({"epochs": 2, **training})
    return made


def digest_of_cpp_job(pictures, folder, made):
    made = copy.deepcopy(made)
    del made["spec"]["training"]["script"]
    made["spec"]["training"]["model"] = {"name": "mlp"}
    with LocalJob(folder, made, "--input-only") as run:
        return run.succeed()["streamDigest"]


def test_job_of_the_example(start, pictures, tmp_path):
    made = job(pictures, tmp_path / "checkpoint.pt")
    run = start(made)
    report = run.succeed()
    assert report["steps"] == 10 and report["samplesConsumed"] == 600
    assert report["streamDigest"] == digest_of_cpp_job(pictures, tmp_path / "cpp", made)
    assert "epoch 0: loss" in run.text() and "epoch 1: loss" in run.text()
    assert "accuracy" in report and 0 <= report["accuracy"] <= 1
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["stream"]["step"] == 10


def test_torchvision_on_the_workers(start, pictures, tmp_path):
    """The digest is that of the input alone, and the validation transform leaves pictures as they are."""
    made = job(pictures, tmp_path / "checkpoint.pt", epochs=1)
    augmented = yaml.safe_load((EXAMPLES / "augment.yaml").read_text())["spec"]["pipeline"]
    assert any(entry["op"] == "Python" for entry in augmented)
    made["spec"]["pipeline"] = augmented
    run = start(made)
    report = run.succeed()
    with LocalJob(run.folder / "again", made, "--input-only") as again:
        assert again.succeed()["streamDigest"] == report["streamDigest"]
    assert report.get("badSamples", 0) == 0


def job_of_numbers(name, folder):
    """An example whose labels are no classes, on pictures that it has drawn itself."""
    example = SOURCE / "examples" / name
    subprocess.run([sys.executable, "-B", example / "make_data.py", folder, "--samples", "800"], check=True)
    made = yaml.safe_load((example / "job.yaml").read_text().replace(f"/tmp/{name}", str(folder)))
    made["spec"]["training"]["script"] = {"command": [sys.executable, "train.py"], "workingDirectory": str(example)}
    return made


@pytest.mark.full
def test_several_labels_at_once(start, tmp_path):
    run = start(job_of_numbers("multilabel", tmp_path / "data"))
    report = run.succeed()
    assert report["samplesConsumed"] == 6 * 800
    shares = [evaluation["accuracy"] for evaluation in report["evaluations"]]
    assert len(shares) == 6 and "epoch 5: loss" in run.text()
    # By chance half of the marks are right, and a sixteenth of the pictures.
    assert shares[-1] > 0.95 and shares[-1] > shares[0]
    assert report["reported"]["allMarksRight"] > 0.8


@pytest.mark.full
def test_numbers_instead_of_a_class(start, tmp_path):
    run = start(job_of_numbers("regression", tmp_path / "data"))
    report = run.succeed()
    assert report["samplesConsumed"] == 6 * 800 and "epoch 5: loss" in run.text()
    assert report["reported"]["pixelsOff"] < 3  # 8.4 for whoever always says the middle of the picture
    assert report["lossCurve"][-1]["loss"] < report["lossCurve"][0]["loss"] / 2


@pytest.mark.full
@pytest.mark.parametrize("name", SELF_SUPERVISED)
def test_views_of_an_example(start, pictures, name):
    folder = SOURCE / "examples" / name
    made = yaml.safe_load((folder / "job.yaml").read_text().replace(f"/tmp/{name}", str(pictures)))
    made["spec"]["training"]["script"] = {"command": [sys.executable, "train.py"], "workingDirectory": str(folder)}
    made["spec"]["training"].update({"epochs": 2, "batchSizePerWorker": 16})
    assert sum(view["count"] for view in made["spec"]["views"]) == SELF_SUPERVISED[name]
    run = start(made)
    report = run.succeed()
    assert report["steps"] == 2 * (300 // 32)
    assert "epoch 0: loss" in run.text() and "epoch 1: loss" in run.text() and "nan" not in run.text()
    assert ("accuracy" in report) == (name == "simclr")
    with LocalJob(run.folder / "again", made, "--input-only") as again:
        assert again.succeed()["streamDigest"] == report["streamDigest"]


@pytest.mark.full
@pytest.mark.parametrize("name", SELF_SUPERVISED)
def test_views_by_themselves(pictures, tmp_path, name):
    """`python train.py`: one rank, whatever starts it."""
    folder = tmp_path / name
    folder.mkdir()
    for file in ("train.py", "job.yaml"):
        text = (SOURCE / "examples" / name / file).read_text().replace(f"/tmp/{name}", str(pictures))
        (folder / file).write_text(text.replace("epochs: 10", "maxSteps: 3"))
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=PACKAGE, HETERO_RUNTIME=str(RUNTIME), OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "epoch 0: loss" in done.stdout


@pytest.mark.full
def test_nothing_is_left_to_train(start, pictures, tmp_path):
    """The same job again: its script goes on from its checkpoint at the end of the stream."""
    made = job(pictures, tmp_path / "checkpoint.pt")
    report = start(made).succeed()
    again = start(made)
    assert again.succeed()["streamDigest"] == report["streamDigest"]
    assert ": loss" not in again.text()


@pytest.mark.full
def test_by_itself(pictures, tmp_path):
    """`python train.py`: one rank, and nothing is left of what it has started."""
    folder = tmp_path / "pytorch"
    folder.mkdir()
    for name in ("train.py", "job.yaml"):
        text = (EXAMPLES / name).read_text().replace("/tmp/pictures", str(pictures)).replace("epochs: 4", "maxSteps: 5")
        (folder / name).write_text(text)
    variables = dict(os.environ, PYTHONPATH=PACKAGE, HETERO_RUNTIME=str(RUNTIME), OMP_NUM_THREADS="1")
    done = subprocess.run(
        [sys.executable, "train.py", "--checkpoint", tmp_path / "checkpoint.pt"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "epoch 0: loss" in done.stdout
    assert str(folder) not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


@pytest.mark.full
def test_before_the_change(pictures, tmp_path):
    """The script with torch's own loader runs, too."""
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", EXAMPLES / "train_dataloader.py"]
        + ["--data", pictures, "--epochs", "1", "--checkpoint", tmp_path / "checkpoint.pt"],
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
    )
    assert done.returncode == 0, done.stderr
    assert "epoch 0: loss" in done.stdout


@pytest.mark.full
def test_segmentation(start, tmp_path):
    """As it is, with its own pictures: the mean IoU rises far above that of a guess."""
    folder = SOURCE / "examples/segmentation"
    shapes = tmp_path / "shapes"
    subprocess.run([sys.executable, folder / "make_data.py", shapes], check=True, timeout=120)
    made = yaml.safe_load((folder / "job.yaml").read_text().replace("/tmp/shapes", str(shapes)))
    made["spec"]["training"]["script"] = {"command": [sys.executable, "train.py"], "workingDirectory": str(folder)}
    run = start(made)
    report = run.succeed()
    assert report["samplesConsumed"] == 4 * 600 and report["badSamples"] == 0
    scores = [float(line.rsplit(" ", 1)[1]) for line in run.text().splitlines() if "mean IoU" in line]
    assert len(scores) == 4
    assert scores[-1] > 0.7 and scores[-1] > scores[0], scores
