"""Cost of ODIN's input perturbation relative to a forward pass, and to pytorch-ood's where that is installed.

    python benchmarks/odin_cost.py

The input gradient takes a forward and a backward pass, and the perturbed input a forward pass of its own. Also: a random
network beside the original, which should cost the same.
"""

from __future__ import annotations

import importlib.util
import os
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import torch

from harness import Contestant, cpu_race, save
from shiftproof.models import load_model, perturbed_by_odin, random_network

IMAGES = 8
EPS, TEMPERATURE = 0.0014, 1000.0
NETWORK = '''
from torch import nn

class Block(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out))
        self.shortcut = nn.Conv2d(into, out, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, values):
        return (self.second(self.first(values)) + self.shortcut(values)).relu()

def eighteen():
    """A residual network of eighteen layers (He et al., 2016)."""
    sizes = [(64, 64, 1)] + [(into, 2 * into, 2) for into in (64, 128, 256)]
    blocks = [block for into, out, stride in sizes for block in (Block(into, out, stride), Block(out, out, 1))]
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
'''


def peers(module: torch.nn.Module, inputs: torch.Tensor) -> dict[str, Contestant]:
    """Others' ways to the same scores; their parameters ask for gradients, as those of a module fresh from training do."""
    for parameter in module.parameters():
        parameter.requires_grad = True
    if importlib.util.find_spec("pytorch_ood") is None:
        print("pytorch-ood is not installed: ODIN is timed beside a forward pass alone")
        return {}
    from pytorch_ood.detector import ODIN

    detector = ODIN(module, eps=EPS, temperature=TEMPERATURE)
    return {"ODIN by pytorch-ood": Contestant(partial(detector.predict, inputs), IMAGES)}


def main() -> None:
    torch.set_num_threads(1)
    rounds = int(os.environ.get("ROUNDS", "5"))
    inputs = np.random.default_rng(0).normal(size=(IMAGES, 3, 224, 224)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "network.py").write_text(NETWORK)
        model, other = (load_model(f"torch:{folder}/network.py:eighteen", preprocess="imagenet") for _ in range(2))
    odin = perturbed_by_odin(model, eps=EPS, temperature=TEMPERATURE)
    contestants = {
        "a forward pass": Contestant(partial(model, inputs), IMAGES),
        f"ODIN, eps {EPS}": Contestant(partial(odin, inputs), IMAGES),
        **peers(other.forward.module, torch.from_numpy(inputs)),  # type: ignore[attr-defined]
    }
    results = cpu_race(contestants, "image", rounds=rounds)
    if importlib.util.find_spec("onnxruntime") is not None:
        lite = load_model("lite:0", threads=1)
        drawn = random_network(lite, 1)
        for network in (lite, drawn):
            network(inputs)  # sessions are made with the first batch
        lites = {"lite:0": lite, "lite:0 redrawn": drawn}
        results |= cpu_race(
            {name: Contestant(partial(network, inputs), IMAGES) for name, network in lites.items()},
            "image",
            rounds=4 * rounds,
        )
    save("odin_cost", results)


if __name__ == "__main__":
    main()
