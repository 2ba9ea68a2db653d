"""torchdata's StatefulDataLoader over the stream; crashes twice and goes on from the loader's state."""

import os
import pathlib
import time

import hetero
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

from proof.record import Journal

stream = hetero.Stream()
loader = StatefulDataLoader(stream, batch_size=None, num_workers=0)
path = pathlib.Path(os.environ["PROOF_RECORDS"])
mine = path / f"loader-{stream.rank}.pt"
steps = []
if mine.exists():
    saved = torch.load(mine, weights_only=True)
    steps = saved["steps"]
    loader.load_state_dict(saved["loader"])
while stream.step < stream.total_steps:
    for batch in loader:
        steps.append(batch.step)
        if batch.step in (7, 20) and not (path / f"state-{batch.step}-{stream.rank}").exists():
            torch.save({"loader": loader.state_dict(), "steps": steps}, mine)
            (path / f"state-{batch.step}-{stream.rank}").touch()
        if batch.step in (8, 21) and not (path / f"crash-{batch.step + 1}").exists():
            # The crash of rank 0 finds both ranks with their states, and neither beyond.
            while stream.rank == 1 or not (path / f"state-{batch.step - 1}-1").exists():
                time.sleep(0.01)
        if batch.step in (9, 22) and stream.rank == 0 and not (path / f"crash-{batch.step}").exists():
            (path / f"crash-{batch.step}").touch()
            raise RuntimeError(f"at step {batch.step}")
journal = Journal("trained", stream.rank, final=True)
for step in steps:
    journal.write(step=step)
stream.close()
