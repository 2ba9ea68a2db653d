"""A real S3 server for the benches of stores, and what they do with hetero-runtime."""

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[3]
RUNTIME = ROOT / "build/release/bin/hetero-runtime"
SERVER = ROOT / ".deps/storage/bin/versitygw"  # built by tests/integration/storage/server/build
KEY, SECRET, REGION = "hetero-key", "hetero-secret", "eu-test-1"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(port: int) -> dict[str, str]:
    """What a client of the server at this port reads, ours or another's."""
    return {
        **os.environ,
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
    }


@contextlib.contextmanager
def serving(folder: str) -> Iterator[int]:
    """versitygw with the empty bucket `bucket`, whose objects lie in the folder; gives its port."""
    pathlib.Path(folder, "buckets/bucket").mkdir(parents=True)
    port = free_port()
    server = subprocess.Popen(
        [SERVER, "--access", KEY, "--secret", SECRET, "--region", REGION, "--port", f"127.0.0.1:{port}", "posix",
         f"{folder}/buckets"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"bench: {SERVER} does not answer on port {port}")
                time.sleep(0.05)
        yield port
    finally:
        server.kill()
        server.wait()


def run(arguments: list[str], env: dict[str, str]) -> None:
    """hetero-runtime with these arguments, which is given ten minutes."""
    done = subprocess.run([str(RUNTIME), *arguments], env=env, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"bench: hetero-runtime {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
