"""`waterjar new`: a commented declaration to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waterjar.cli.output import AsJson, print_json
from waterjar.errors import WaterjarError

NAME = "new"

TEMPLATE = """\
# A study of the Einstellung effect. Check it with:  waterjar run {file} --out {out} --dry-run
# Run it (and go on after a stop) with:             waterjar run {file} --out {out}
kind: einstellung
experiment_name: einstellung_effect_analysis

data:
  name: glyphs            # drawn in seconds, no download; or cifar100, npz
  settings:               # those of the data set; for cifar100: path, download
    train_per_class: 200
    test_per_class: 50

seeds: [42, 123, 456]
backbones: [small_cnn]    # or resnet18, vit, mlp; with settings: [{{name: resnet18, settings: {{width: 16}}}}]
strategies:               # trained on T1, then on T2; the same optimiser for all, or the comparison is of optimisers
  - {{learner: sgd, settings: {{lr: 0.03}}}}
  - {{learner: ewc_on, preset: ewc_on_einstellung, settings: {{lr: 0.03}}}}
  - {{learner: derpp, preset: derpp_einstellung, settings: {{lr: 0.03}}}}
scenarios: [scratch_t2, interleaved, sequential]  # the first two are baselines, run once per backbone and seed
baseline: {{lr: 0.03}}      # settings of the learner behind the baselines

tasks:
  t1_superclasses: [0, 1, 2, 3, 4, 5, 6, 7]
  t2_superclasses: [8, 9, 10, 11]
  shortcut_superclasses: [8]  # in T2; at least one superclass stays without the shortcut
  validation: 0.1             # share of T2 train images held out to pick the checkpoint

shortcut:
  kind: patch
  rate: 0.5               # share of the shortcut classes' train images that carry it
  eval_rate: 1.0          # the same in the `normal` evaluation sets
  mask: black             # or mean, noise, inpaint
  settings: {{size: 4, colour: [255, 0, 255], location: random}}  # or top_left, bottom_right ...

training:
  epochs_t1: 10
  epochs_t2: 10
  batch_size: 32
  precision: float32      # or bfloat16

recording:
  features: []            # layers, such as [penultimate]
  weights: false
  every: 1                # a snapshot every so many epochs

# sweep:                  # every combination is run
#   shortcut.rate: [0.25, 0.5, 1.0]

resources:                # not part of a run's identity (but keep `threads`: another number rounds otherwise)
  workers: 1
  threads: 1
  device: auto            # or cpu, cuda, mps
  checkpoint_seconds: 60

analysis:
  threshold: 0.6          # accuracy that counts as adapted
  window: 3
"""


def command(
    file: Annotated[Path, typer.Argument(help="Where to write it.")] = Path("study.yaml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented study declaration."""
    if file.exists() and not force:
        raise WaterjarError(f"{file} is there already: give another name, or --force to replace it")
    try:
        file.write_text(TEMPLATE.format(file=file, out=file.with_suffix("")), encoding="utf-8")
    except OSError as error:
        raise WaterjarError(f"could not write {file}: {error.strerror}") from error
    if as_json:
        print_json({"file": str(file)})
    else:
        typer.echo(f"wrote {file}; next: waterjar run {file} --out {file.with_suffix('')} --dry-run")
