"""The job of train.py with Transformers' Trainer and a small vision transformer.

hetero-runtime local job.yaml --set 'training.script.command=[python3, transformers_train.py]'
"""

import argparse
import pathlib

import hetero
import torch
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
        return {"pixel_values": images, "labels": labels, "weight": batch.weight}

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        weight = inputs.pop("weight")
        outputs = model(**inputs)
        return (outputs.loss * weight, outputs) if return_outputs else outputs.loss * weight


class Checkpoints(transformers.TrainerCallback):
    def on_step_end(self, arguments, state, control, **_):
        control.should_save = stream.should_checkpoint()

    def on_save(self, arguments, state, control, **_):
        torch.save(stream.state_dict(), self.path(state.global_step))

    @staticmethod
    def path(step):
        return args.checkpoints / f"checkpoint-{step}" / f"stream-{stream.rank}.pt"


transformers.set_seed(7)
size = transformers.ViTConfig(
    image_size=32,
    patch_size=8,
    hidden_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=128,
    num_labels=stream.classes,
)
arguments = transformers.TrainingArguments(
    output_dir=str(args.checkpoints),
    max_steps=stream.total_steps,
    learning_rate=0.001,
    save_strategy="no",  # but when the job says so
    ignore_data_skip=True,  # the stream goes on where it was by itself
    remove_unused_columns=False,
    report_to="none",
    disable_tqdm=True,
    use_cpu=True,
)
trainer = Trainer(model=transformers.ViTForImageClassification(size), args=arguments, callbacks=[Checkpoints()])
saved = transformers.trainer_utils.get_last_checkpoint(args.checkpoints) if args.checkpoints.exists() else None
if saved:
    step = int(saved.rsplit("-", 1)[1])
    stream.load_state_dict(torch.load(Checkpoints.path(step), weights_only=True))
result = trainer.train(resume_from_checkpoint=saved)
stream.report(loss=result.training_loss)
stream.close()
