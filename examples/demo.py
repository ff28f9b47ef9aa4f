"""Two tasks, one small network, three seeds: record, look, verify. What `make demo` runs."""

import shutil
import sys
from pathlib import Path

import torch
from rich.progress import track
from torch import Tensor, nn

import waterjar
from waterjar.cli.main import app
from waterjar.view import figures

OUT = Path("demo-out")
TASKS = ["clusters", "the same, inputs permuted"]
EPOCHS = 15


def clusters(generator: torch.Generator, count: int, centres: Tensor) -> tuple[Tensor, Tensor]:
    labels = torch.randint(0, len(centres), (count,), generator=generator)
    return centres[labels] + torch.randn(count, centres.shape[1], generator=generator), labels


def accuracy(network: nn.Module, data: tuple[Tensor, Tensor]) -> float:
    with torch.no_grad():
        return float((network(data[0]).argmax(1) == data[1]).double().mean())


def train(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    centres = 1.2 * torch.randn(10, 32, generator=generator)
    order = torch.randperm(32, generator=generator)
    sets = {split: clusters(generator, n, centres) for split, n in (("train", 2000), ("test", 1000))}
    permuted = {split: (x[:, order], y) for split, (x, y) in sets.items()}
    network = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    optimiser = torch.optim.SGD(network.parameters(), lr=0.05)

    config = {"learner": "sgd", "hidden": 64, "lr": 0.05, "epochs": EPOCHS}
    evaluations = dict(zip(TASKS, range(2), strict=True))
    with waterjar.Recorder(OUT / f"sgd-{seed}", config, seeds=[seed], eval_sets=evaluations, tasks=TASKS) as recorder:
        for task, data in zip(TASKS, (sets, permuted), strict=True):
            for epoch in range(EPOCHS + 1):
                inputs, labels = data["train"]
                for batch in torch.randperm(len(inputs), generator=generator).split(50) if epoch else ():
                    optimiser.zero_grad()
                    nn.functional.cross_entropy(network(inputs[batch]), labels[batch]).backward()
                    optimiser.step()
                scores = [accuracy(network, sets["test"]), accuracy(network, permuted["test"])]
                recorder.log(train_task=task, epoch=epoch, performance={"accuracy": scores})


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    waterjar.create_study(OUT, {"title": "Does a small network forget?"})
    for seed in track(range(3), description="training"):
        train(seed)
    for arguments in (["ls", str(OUT)], ["show", str(OUT / "sgd-0")], ["verify", str(OUT)]):
        app(arguments, standalone_mode=False)
    study = waterjar.open_study(OUT)
    figure = figures.draw("learning_curves", study)
    path = figures.save(figure, OUT / "learning_curves.png")
    performance = next(iter(study.load().values()))
    first = performance.accuracy.sel(eval_set=TASKS[0], step=[EPOCHS, 2 * EPOCHS + 1]).mean("repeat").values
    sys.stdout.write(
        f"Accuracy on the first task fell from {first[0]:.2f} to {first[1]:.2f} while the second was learned.\n"
        f"The figure: {path}\n"
    )


if __name__ == "__main__":
    main()
