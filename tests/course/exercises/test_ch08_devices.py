"""Chapter 08. RIGHT: other right answers, which test_right_answers tries."""

from __future__ import annotations

import numpy as np

import tensorkit as tk


def array_forced(t):
    return t.numpy(force=True)


def array_under_no_grad(t):
    with tk.no_grad():
        return np.array(t.cpu().detach().numpy())


def faded_with_like(x):
    weights = tk.ones_like(x[0]) if len(x) else tk.ones(x.shape[1], device=x.device)
    for j in range(x.shape[1]):
        weights[j] = 1 / (j + 1)
    return x * weights


def faded_with_a_moved_constant(x):
    return x * (1 / (tk.arange(x.shape[1]) + 1.0)).to(x.device)


def losses_stacked(batches):
    return tk.stack([(x * x).mean() for x in batches]).mean().item()


def losses_added_out_of_place(batches):
    total = 0
    for x in batches:
        total = total + x.square().mean()
    return (total / len(batches)).item()


def moved_by_kind(batch, device):
    kind = type(batch)
    if kind is tk.Tensor:
        return batch.to(device)
    if kind is dict:
        return dict(
            zip(batch, [moved_by_kind(value, device) for value in batch.values()], strict=True)
        )
    if kind is list:
        return [moved_by_kind(value, device) for value in batch]
    if kind is tuple:
        return tuple(moved_by_kind(value, device) for value in batch)
    return batch


def moved_by_trying(batch, device):
    if hasattr(batch, "items"):
        return {key: moved_by_trying(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)([moved_by_trying(value, device) for value in batch])
    return batch.to(device=device) if hasattr(batch, "to") else batch


def batch_by_counting(free, fixed, per_sample):
    n = 0
    while fixed + -(-(n + 1) * per_sample // 512) * 512 <= free:
        n += 1
    return n


def batch_by_blocks(free, fixed, per_sample):
    blocks = max(0, free - fixed) // 512
    return blocks * 512 // per_sample


def even_by_formula(cpu, gpu, transfer):
    return 0 if cpu <= gpu else int(transfer // (cpu - gpu)) + 1


def even_by_search(cpu, gpu, transfer):
    found = (n for n in range(1, 10_000) if n * cpu > transfer + n * gpu)
    return next(found, 0)


def unscaled_by_a_loop(gradients, scale):
    divided = []
    for gradient in gradients:
        if gradient.isnan().any() or gradient.isinf().any():
            return []
        divided.append(gradient.to(tk.float32).div(scale))
    return divided


def unscaled_by_the_sum(gradients, scale):
    divided = [gradient.float() * (1 / scale) for gradient in gradients]
    total = sum(gradient.abs().sum().item() for gradient in divided)
    return divided if total < float("inf") else []


RIGHT = [
    ("as-array", array_forced),
    ("as-array", array_under_no_grad),
    ("any-device", faded_with_like),
    ("any-device", faded_with_a_moved_constant),
    ("fewer-waits", losses_stacked),
    ("fewer-waits", losses_added_out_of_place),
    ("to-device", moved_by_kind),
    ("to-device", moved_by_trying),
    ("largest-batch", batch_by_counting),
    ("largest-batch", batch_by_blocks),
    ("break-even", even_by_formula),
    ("break-even", even_by_search),
    ("unscaled", unscaled_by_a_loop),
    ("unscaled", unscaled_by_the_sum),
]
