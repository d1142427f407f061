"""Weights: gives the parameters and statistics of a fresh module random values.

A fresh module has biases of 0, scales of 1 and batch norms that change nothing. Optimizers delete
or merge these, but have to keep those of a trained model. Afterwards no parameter is constant, and
batch norms have the statistics of the data that they see, up to a random part. Other buffers, such
as tables of positions, belong to the architecture and stay. The seed alone decides the result.
"""

from __future__ import annotations

import importlib
from typing import Any

torch: Any = importlib.import_module("torch")

SPREAD = 0.1  # deviation of a formerly constant parameter, and relative deviation of each statistic


def perturb(module: Any, generator: Any) -> None:
    """Moves every parameter: a constant one by `SPREAD`, any other by `SPREAD` times its deviation."""
    with torch.no_grad():
        for parameter in module.parameters():
            deviation = parameter.std().item() if parameter.numel() > 1 else 0.0
            parameter.add_(torch.randn(parameter.shape, generator=generator) * SPREAD * (deviation or 1.0))


def calibrate(module: Any, inputs: tuple[Any, ...], generator: Any) -> None:
    """Sets the statistics of batch norms to those of these inputs, then moves them."""
    norms = [part for part in module.modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    module.eval()
    for norm in norms:
        norm.train()
        norm.momentum = None  # the running statistics are the mean over all batches so far
        norm.reset_running_stats()
    with torch.no_grad():
        module(*inputs)
        for norm in norms:
            norm.running_mean.add_(torch.randn(norm.running_mean.shape, generator=generator) * SPREAD * norm.running_var.sqrt())
            norm.running_var.mul_(torch.exp(torch.randn(norm.running_var.shape, generator=generator) * SPREAD))
    module.eval()
