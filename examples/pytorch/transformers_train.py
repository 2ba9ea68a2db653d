"""The job of train.py with Transformers' Trainer.

hetero-runtime local job.yaml --set 'training.script.command=[python3, transformers_train.py]'
"""

import argparse
import pathlib

import hetero
import torch
import torch.nn.functional as F
import torchvision
import transformers
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoints", type=pathlib.Path, default="/tmp/pictures/transformers")
args = parser.parse_args()

stream = hetero.Stream(pathlib.Path(__file__).with_name("job.yaml"))


class Trainer(transformers.Trainer):
    def get_train_dataloader(self):
        # Not prepared by Accelerate, which would share out what is this rank's already.
        return DataLoader(stream, batch_size=None, num_workers=0, collate_fn=self.named)

    @staticmethod
    def named(batch):
        images, labels = batch
        return {"images": images, "labels": labels, "weight": batch.weight}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.model = torchvision.models.resnet18(num_classes=stream.classes)

    def forward(self, images, labels, weight):
        return {"loss": F.cross_entropy(self.model(images), labels) * weight}


class Checkpoints(transformers.TrainerCallback):
    def on_step_end(self, arguments, state, control, **_):
        control.should_save = stream.should_checkpoint()

    def on_save(self, arguments, state, control, **_):
        torch.save(stream.state_dict(), self.path(state.global_step))

    @staticmethod
    def path(step):
        return args.checkpoints / f"checkpoint-{step}" / f"stream-{stream.rank}.pt"


transformers.set_seed(7)
arguments = transformers.TrainingArguments(
    output_dir=str(args.checkpoints),
    max_steps=stream.total_steps,
    learning_rate=0.001,
    save_strategy="no",  # but when the job says so
    ignore_data_skip=True,  # the stream goes on where it was by itself
    remove_unused_columns=False,
    report_to="none",
    disable_tqdm=True,
    ddp_find_unused_parameters=False,
    use_cpu=True,
)
trainer = Trainer(model=Net(), args=arguments, callbacks=[Checkpoints()])
saved = transformers.trainer_utils.get_last_checkpoint(args.checkpoints) if args.checkpoints.exists() else None
if saved:
    step = int(saved.rsplit("-", 1)[1])
    stream.load_state_dict(torch.load(Checkpoints.path(step), weights_only=True))
result = trainer.train(resume_from_checkpoint=saved)
stream.report(loss=result.training_loss)
stream.close()
