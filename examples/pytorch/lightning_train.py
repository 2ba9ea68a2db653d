"""The job of train.py with Lightning. The stream is the data loader: Lightning asks it for its state and gives it back.

hetero-runtime local job.yaml --set 'training.script.command=[python3, lightning_train.py]'
"""

import argparse
import os
import pathlib

import hetero
import lightning
import torch
import torch.nn.functional as F
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--checkpoint", type=pathlib.Path, default="/tmp/pictures/lightning.ckpt")
args = parser.parse_args()


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = torchvision.models.resnet18(num_classes=10)

    def training_step(self, batch, index):
        images, labels = batch
        return F.cross_entropy(self.model(images), labels) * batch.weight

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=0.001)


class Checkpoints(lightning.Callback):
    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        stream.report(loss=outputs["loss"])
        if stream.should_checkpoint():
            trainer.save_checkpoint(args.checkpoint)


lightning.seed_everything(7)
net = Net()
stream = hetero.Stream(pathlib.Path(__file__).with_name("job.yaml"))
trainer = lightning.Trainer(
    accelerator="cpu",
    strategy="ddp" if stream.world_size > 1 else "auto",
    devices=int(os.environ.get("LOCAL_WORLD_SIZE", 1)),
    num_nodes=int(os.environ.get("GROUP_WORLD_SIZE", 1)),
    max_steps=stream.total_steps,
    use_distributed_sampler=False,
    callbacks=[Checkpoints()],
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    logger=False,
)
trainer.fit(net, stream, ckpt_path=args.checkpoint if args.checkpoint.exists() else None)
stream.close()
