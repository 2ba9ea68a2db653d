"""What a script may know of the job that it runs in."""

from __future__ import annotations

from typing import Dict, Optional

from .connection import Message


class JobFacts:
    """Fixed when the stream is opened."""

    _welcome: Message

    @property
    def rank(self) -> int:
        return int(self._welcome["rank"])

    @property
    def world_size(self) -> int:
        return int(self._welcome["world_size"])

    @property
    def local_rank(self) -> int:
        return int(self._welcome["local_rank"])

    @property
    def restart_count(self) -> int:
        """How many times the scripts have started before; as TORCHELASTIC_RESTART_COUNT."""
        return int(self._welcome["restart_count"])

    @property
    def total_steps(self) -> int:
        return int(self._welcome["total_steps"])

    @property
    def steps_per_epoch(self) -> int:
        return int(self._welcome["steps_per_epoch"])

    @property
    def accumulation(self) -> int:
        """Batches of one step: gradientAccumulationSteps."""
        return int(self._welcome["accumulation"])

    @property
    def batch_size(self) -> int:
        """Samples of one full batch of this rank."""
        return int(self._welcome["batch_size"])

    @property
    def samples(self) -> int:
        return int(self._welcome["samples"])

    @property
    def classes(self) -> int:
        return int(self._welcome["classes"])

    @property
    def views(self) -> Dict[str, int]:
        """How many pictures a training sample has by each name: {"image": 1} unless the manifest has `views`."""
        shapes = {field["name"]: field["shape"] for field in self._welcome["fields"]}
        names = ["image", *self._welcome.get("views", {})]
        return {name: int(shapes[name][0]) if len(shapes[name]) > 3 else 1 for name in names}

    @property
    def validation_samples(self) -> int:
        return int(self._welcome["validation_samples"])

    @property
    def may_hold(self) -> int:
        """Batches that the script may keep views of at a time; for one more it waits until another is let go."""
        return int(self._welcome["may_hold"])

    @property
    def seed(self) -> int:
        return int(self._welcome["seed"])

    @property
    def checkpoint_uri(self) -> Optional[str]:
        """training.checkpoint.uri of the manifest: where the script may save; None without one."""
        checkpoint = self._welcome.get("checkpoint")
        return str(checkpoint["uri"]) if checkpoint else None
