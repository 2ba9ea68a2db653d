"""Jobs on a cluster, by the official Kubernetes client: `pip install kubernetes`."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import time
from typing import Any, Callable, Dict, Mapping, Optional, Union

from .errors import HeteroError, MisuseError, StreamTimeout

GROUP = "training.hetero.dev"
VERSION = "v1alpha1"
PLURAL = "heterotrainingjobs"

_LOOK_EVERY = 2.0  # seconds
_REQUEST_TIMEOUT = 30

Manifest = Union[str, "os.PathLike[str]", Mapping[str, Any]]


class JobFailed(HeteroError, RuntimeError):
    """A job has failed; the message is its own."""


@dataclasses.dataclass(frozen=True)
class JobStatus:
    """What the API server has of a job. `raw` is the whole object's status."""

    name: str
    namespace: str
    phase: str  # the first condition that is True, as kubectl's column State; "" while there is none
    message: str
    step: int
    total_steps: int
    restarts: int
    raw: Mapping[str, Any]

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


def submit(manifest: Manifest, *, namespace: Optional[str] = None, context: Optional[str] = None) -> str:
    """Creates a job and returns its name. `manifest`: a path of YAML or the manifest as a dictionary; `namespace`: by
    default the manifest's, else that of the kubeconfig's context."""
    body = _read(manifest)
    place = namespace or body.get("metadata", {}).get("namespace") or _namespace(context)
    created = _call(
        "create",
        lambda: _jobs(context).create_namespaced_custom_object(
            GROUP, VERSION, place, PLURAL, body, _request_timeout=_REQUEST_TIMEOUT
        ),
    )
    return str(created["metadata"]["name"])


def status(name: str, *, namespace: Optional[str] = None, context: Optional[str] = None) -> JobStatus:
    return _status_of(_get(name, namespace or _namespace(context), context))


def wait(
    name: str,
    *,
    timeout: Optional[float] = None,
    namespace: Optional[str] = None,
    context: Optional[str] = None,
) -> JobStatus:
    """Until the job has ended. JobFailed when it failed, StreamTimeout after `timeout` seconds."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        now = status(name, namespace=namespace, context=context)
        if now.phase == "Failed":
            raise JobFailed(f"job {now.namespace}/{name} failed: {now.message}")
        if now.finished:
            return now
        if end is not None and time.monotonic() >= end:
            raise StreamTimeout(
                f"job {now.namespace}/{name} has not ended within {timeout:g} s: {now.phase} {now.message}"
            )
        time.sleep(_LOOK_EVERY)


def logs(
    name: str,
    *,
    role: Optional[str] = None,
    index: Optional[int] = None,
    tail: Optional[int] = None,
    namespace: Optional[str] = None,
    context: Optional[str] = None,
) -> Dict[str, str]:
    """What the job's pods have written so far, by pod. `role` and `index` choose, `tail` lines of each."""
    place = namespace or _namespace(context)
    job = _get(name, place, context)
    selector = [f"{GROUP}/job-uid={job['metadata']['uid']}"]
    selector += [f"{GROUP}/role={role}"] if role is not None else []
    selector += [f"{GROUP}/replica-index={index}"] if index is not None else []
    core = _client(context).CoreV1Api()
    pods = _call(
        "list the pods of",
        lambda: core.list_namespaced_pod(place, label_selector=",".join(selector), _request_timeout=_REQUEST_TIMEOUT),
    )
    begun = [pod.metadata.name for pod in pods.items if pod.status.phase != "Pending"]

    def read(pod: str) -> str:
        return str(core.read_namespaced_pod_log(pod, place, tail_lines=tail, _request_timeout=_REQUEST_TIMEOUT))

    return {pod: _call("read the logs of", functools.partial(read, pod)) for pod in begun}


def report(name: str, *, namespace: Optional[str] = None, context: Optional[str] = None) -> Dict[str, Any]:
    """The job's result as its status keeps it after its pods are gone: steps, loss, streamDigest, reportURI, ...

    The whole report lies where reportURI says; `kubectl hetero report NAME --save FOLDER` fetches it.
    """
    now = status(name, namespace=namespace, context=context)
    result = now.raw.get("result")
    if not result:
        raise MisuseError(f"job {now.namespace}/{name} has no result yet: {now.phase or 'it has just been created'}")
    return dict(result)


def _status_of(job: Mapping[str, Any]) -> JobStatus:
    raw = job.get("status") or {}
    holds = [condition for condition in raw.get("conditions", []) if condition.get("status") == "True"]
    progress = raw.get("progress") or {}
    return JobStatus(
        name=job["metadata"]["name"],
        namespace=job["metadata"]["namespace"],
        phase=holds[0]["type"] if holds else "",
        message=holds[0].get("message", "") if holds else "",
        step=int(progress.get("step", 0)),
        total_steps=int(progress.get("totalSteps", 0)),
        restarts=int(raw.get("restarts", 0)),
        raw=raw,
    )


def _read(manifest: Manifest) -> Dict[str, Any]:
    if isinstance(manifest, Mapping):
        body = json.loads(json.dumps(manifest))
    else:
        _client_module()
        import yaml  # the Kubernetes client needs it, too

        try:
            body = yaml.safe_load(pathlib.Path(manifest).read_text())
        except (OSError, yaml.YAMLError) as error:
            raise MisuseError(f"cannot read the manifest {os.fspath(manifest)!r}: {error}") from None
    if not isinstance(body, dict) or body.get("kind") != "HeteroTrainingJob":
        raise MisuseError("this is no manifest of a job: its kind is not HeteroTrainingJob")
    return body


def _get(name: str, namespace: str, context: Optional[str]) -> Dict[str, Any]:
    job = _call(
        "get",
        lambda: _jobs(context).get_namespaced_custom_object(
            GROUP, VERSION, namespace, PLURAL, name, _request_timeout=_REQUEST_TIMEOUT
        ),
    )
    return dict(job)


def _call(verb: str, call: Callable[[], Any]) -> Any:
    """`call`, with the API server's own words in what it raises."""
    from kubernetes.client.exceptions import ApiException
    from urllib3.exceptions import HTTPError

    try:
        return call()
    except ApiException as error:
        try:
            words = json.loads(error.body)["message"]
        except (TypeError, ValueError, KeyError):
            words = error.reason
        raise HeteroError(f"cannot {verb} the job: {words}") from None
    except HTTPError as error:
        raise HeteroError(f"cannot {verb} the job: the API server does not answer ({error})") from None


def _client_module() -> Any:
    try:
        import kubernetes
    except ImportError:
        raise MisuseError("the Kubernetes client is missing: pip install kubernetes") from None
    return kubernetes


def _client(context: Optional[str]) -> Any:
    """The client module, configured as kubectl is; inside a pod by its service account."""
    kubernetes = _client_module()
    try:
        kubernetes.config.load_kube_config(context=context)
    except kubernetes.config.ConfigException as error:
        try:
            kubernetes.config.load_incluster_config()
        except kubernetes.config.ConfigException:
            raise MisuseError(f"there is no cluster to talk to: {error}") from None
    return kubernetes.client


def _jobs(context: Optional[str]) -> Any:
    return _client(context).CustomObjectsApi()


def _namespace(context: Optional[str]) -> str:
    """Of the kubeconfig's context, of this pod, or `default`."""
    kubernetes = _client_module()
    own = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    try:
        contexts, active = kubernetes.config.list_kube_config_contexts()
    except kubernetes.config.ConfigException:
        return own.read_text().strip() if own.is_file() else "default"
    chosen = next((entry for entry in contexts if entry["name"] == context), active) if context else active
    return str(chosen["context"].get("namespace", "default"))
