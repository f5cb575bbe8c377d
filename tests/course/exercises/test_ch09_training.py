"""Chapter 09. RIGHT: other right answers, which test_right_answers tries."""

from __future__ import annotations

import tensorkit as tk
from course.notebook.check import judge
from course.notebook.exercise import load
from tensorkit import nn, optim
from tensorkit.utils.data import DataLoader, TensorDataset

CHAPTER = load("09_training")


def line_with_mse_loss(x, y, steps, lr):
    model = nn.Linear(1, 1)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    optimizer = optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        nn.functional.mse_loss(model(x), y.unsqueeze(1)).backward()
        optimizer.step()
        optimizer.zero_grad()
    return tk.cat([model.weight.detach().flatten(), model.bias.detach()])


def line_by_hand(x, y, steps, lr):
    x, w, b = x[:, 0], 0.0, 0.0
    for _ in range(steps):
        error = w * x + b - y
        w, b = w - lr * 2 * (error * x).mean().item(), b - lr * 2 * error.mean().item()
    return tk.tensor([w, b])


def cross_entropy_of_differences(logits, labels):
    own = logits.gather(1, labels.unsqueeze(1))
    most = (logits - own).max(dim=1).values
    return (most + (logits - own - most.unsqueeze(1)).exp().sum(1).log()).mean()


def cross_entropy_in_a_loop(logits, labels):
    total = 0.0
    for row, label in zip(logits, labels, strict=True):
        high = row.max()
        total = total + high + (row - high).exp().sum().log() - row[label]
    return total / len(labels)


def pairs_from_a_loader(x, y, size, seed):
    generator = tk.Generator().manual_seed(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=size, shuffle=True, generator=generator)
    return [tuple(batch) for batch in loader]


def pairs_by_index(x, y, size, seed):
    tk.manual_seed(seed)
    return [(x[rows], y[rows]) for rows in tk.randperm(len(y)).split(size)]


def pairs_from_the_same_seed_twice(x, y, size, seed):
    x = x[tk.randperm(len(x), generator=tk.Generator().manual_seed(seed))]
    y = y[tk.randperm(len(y), generator=tk.Generator().manual_seed(seed))]
    return list(zip(x.split(size), y.split(size), strict=True))


def confusion_by_product(scores, labels):
    def one_hot(classes):
        return (classes.unsqueeze(1) == tk.arange(scores.shape[1])).long()

    return one_hot(labels).T @ one_hot(scores.argmax(dim=1))


def confusion_by_bincount(scores, labels):
    n = scores.shape[1]
    return tk.bincount(labels * n + scores.argmax(1), minlength=n * n).reshape(n, n)


def momentum_with_copies(parameters, gradients, velocities, lr, momentum):
    with tk.no_grad():
        for i, g in enumerate(gradients):
            if g is not None:
                velocities[i].copy_(momentum * velocities[i] + g)
                parameters[i].sub_(velocities[i], alpha=lr)


@tk.no_grad()
def momentum_in_chains(parameters, gradients, velocities, lr, momentum):
    for p, g, v in zip(parameters, gradients, velocities, strict=True):
        if g is None:
            continue
        p.add_(v.mul_(momentum).add_(g), alpha=-lr)


def scores_with_inference_mode(state, x):
    model = nn.Sequential(
        nn.Linear(x.shape[1], 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, len(state["3.bias"]))
    ).eval()
    model.load_state_dict(state)
    with tk.inference_mode():
        return model(x)


def scores_by_hand(state, x):
    hidden = (x @ state["0.weight"].T + state["0.bias"]).clamp(min=0)
    return hidden @ state["3.weight"].T + state["3.bias"]


def loss_of_all_at_once(scores, labels):
    with tk.no_grad():
        return nn.functional.cross_entropy(tk.cat(scores), tk.cat(labels)).item()


def loss_of_sums(scores, labels):
    sums = [
        float(nn.functional.cross_entropy(s.detach(), y, reduction="sum"))
        for s, y in zip(scores, labels, strict=True)
    ]
    return sum(sums) / sum(len(y) for y in labels)


RIGHT = [
    ("trained-line", line_with_mse_loss),
    ("trained-line", line_by_hand),
    ("cross-entropy-by-hand", cross_entropy_of_differences),
    ("cross-entropy-by-hand", cross_entropy_in_a_loop),
    ("shuffled-apart", pairs_from_a_loader),
    ("shuffled-apart", pairs_by_index),
    ("shuffled-apart", pairs_from_the_same_seed_twice),
    ("mean-of-means", loss_of_all_at_once),
    ("mean-of-means", loss_of_sums),
    ("confusion", confusion_by_product),
    ("confusion", confusion_by_bincount),
    ("momentum-step", momentum_with_copies),
    ("momentum-step", momentum_in_chains),
    ("another-answer-each-time", scores_with_inference_mode),
    ("another-answer-each-time", scores_by_hand),
]


def test_the_cross_entropy_of_the_library_is_refused_under_all_its_names():
    for answer in (
        lambda logits, labels: nn.functional.cross_entropy(logits, labels),
        lambda logits, labels: logits.logsumexp(dim=1).mean(),
    ):
        report = judge(CHAPTER["cross-entropy-by-hand"], answer)
        assert report.status == "failed"
        assert "do it without this call" in str(report)
