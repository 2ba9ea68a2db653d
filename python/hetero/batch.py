"""One batch of one rank."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Iterator, KeysView, Mapping, Union


@dataclasses.dataclass
class Place:
    """Where in the job a batch belongs."""

    step: int  # 0-based over the whole job; of a validation pass: the batch's number in it
    epoch: int
    step_in_epoch: int
    micro: int  # with gradientAccumulationSteps: 0-based inside the step
    last_of_step: bool
    last_of_epoch: bool
    first_slot: int  # position in the epoch's order of this rank's first sample
    count: int  # samples; 0 for a rank that has no share of a short last step
    weight: float
    validation: bool


class Batch:
    """Named arrays (numpy, or PyTorch tensors once torch is imported) with one row per sample.

    `images, labels = batch` unpacks the fields in their order; `batch["label"]` and `batch.label` name one. `ids` are
    the samples' numbers in the dataset. Multiply the mean loss over a batch by `weight`: 1 but for the short last step
    of an epoch, where it makes the mean over the ranks the mean over the step's samples (0 for an empty share).

    Large arrays are views into the agent's memory and keep the whole batch there for as long as they, or views of them,
    live; their bytes are the script's alone until then and may be written to.
    """

    __slots__ = ("_fields", "ids", "place")

    def __init__(self, fields: Mapping[str, Any], ids: Any, place: Place) -> None:
        self._fields: Dict[str, Any] = dict(fields)
        self.ids = ids
        self.place = place

    @property
    def step(self) -> int:
        return self.place.step

    @property
    def epoch(self) -> int:
        return self.place.epoch

    @property
    def weight(self) -> float:
        return self.place.weight

    @property
    def count(self) -> int:
        """Samples in it."""
        return self.place.count

    def keys(self) -> KeysView[str]:
        return self._fields.keys()

    def __getitem__(self, key: Union[str, int]) -> Any:
        if isinstance(key, str):
            try:
                return self._fields[key]
            except KeyError:
                raise KeyError(f"no field '{key}': this batch has {', '.join(self._fields)}") from None
        return list(self._fields.values())[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"a batch has no '{name}'; its fields are {', '.join(self._fields)}") from None

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._fields.values()))

    def __repr__(self) -> str:
        def shape(value: Any) -> str:
            return f"{value.dtype}{list(value.shape)}".replace("torch.", "")

        fields = ", ".join(f"{name}: {shape(value)}" for name, value in self._fields.items())
        return f"Batch(step {self.step}, epoch {self.epoch}, weight {self.weight:g}, {fields})"

    def to(self, device: Any, non_blocking: bool = False) -> "Batch":
        """The same batch with its tensors on `device`, as frameworks ask for it."""
        fields = {name: value.to(device, non_blocking=non_blocking) for name, value in self._fields.items()}
        return Batch(fields, self.ids, self.place)
