"""Data sets and loaders: the same items in the same order as PyTorch's for a seed."""

import numpy as np
import pytest
from tk_oracle import torch

import tensorkit as tk


def _data(m, n=10):
    return m.utils.data.TensorDataset(m.arange(n), m.arange(n) * 10.0)


LINES = {
    "in order": lambda m, d: list(d.DataLoader(_data(m), batch_size=4)),
    "shuffled": lambda m, d: list(d.DataLoader(_data(m), batch_size=4, shuffle=True)),
    "two epochs": lambda m, d: [list(x) for x in [d.DataLoader(_data(m), 3, True)] * 2],
    "drop last": lambda m, d: list(d.DataLoader(_data(m), 4, drop_last=True)),
    "generator": lambda m, d: [
        list(d.DataLoader(_data(m), 4, shuffle=True, generator=m.Generator().manual_seed(3))),
        m.rand(1),
    ],
    "generator, two epochs": lambda m, d: [
        list(x)
        for x in [d.DataLoader(_data(m), 4, True, generator=m.Generator().manual_seed(3))] * 2
    ],
    "numbers": lambda m, d: list(d.DataLoader([1, 2, 3], batch_size=2)),
    "fractions": lambda m, d: list(d.DataLoader([1.5, 2.5], batch_size=2)),
    "truth": lambda m, d: list(d.DataLoader([True, False], batch_size=2)),
    "pairs": lambda m, d: list(d.DataLoader([(m.ones(2), 1), (m.zeros(2), 2)], batch_size=2)),
    "arrays": lambda m, d: list(d.DataLoader([np.ones(2), np.zeros(2)], 2)),
    "split": lambda m, d: [
        list(each.indices)
        for each in d.random_split(range(10), [3, 7], generator=m.Generator().manual_seed(42))
    ],
    "split batches": lambda m, d: list(d.DataLoader(d.random_split(_data(m), [4, 6])[1], 3, True)),
    "subset": lambda m, d: list(d.DataLoader(d.Subset(_data(m), [5, 6, 7]), batch_size=2)),
    "item": lambda m, d: (_data(m)[3], _data(m)[2:4], _data(m)[-1]),
    "lengths": lambda m, d: (
        len(_data(m)),
        len(d.DataLoader(_data(m), 4)),
        len(d.DataLoader(_data(m), 4, drop_last=True)),
        len(d.Subset(range(9), [1])),
    ),
    "nothing": lambda m, d: list(d.DataLoader([])),
    # refused
    "batch size 0": lambda m, d: d.DataLoader(_data(m), batch_size=0),
    "lengths differ": lambda m, d: d.random_split(range(3), [1, 1]),
    "negative fraction": lambda m, d: d.random_split(range(3), [1.5, -0.5]),
    "tensors differ": lambda m, d: d.TensorDataset(m.ones(2), m.ones(3)),
    "abstract": lambda m, d: d.Dataset()[0],
    "without length": lambda m, d: len(d.Dataset()),
    "objects": lambda m, d: next(iter(d.DataLoader([None]))),
    "sizes": lambda m, d: next(iter(d.DataLoader([m.ones(2), m.ones(3)], batch_size=2))),
    "ragged": lambda m, d: next(iter(d.DataLoader([(1, 2), (1,)], batch_size=2))),
}


OTHER_WORDS = {"negative fraction", "objects"}  # refused with PyTorch's class


@pytest.mark.parametrize("name", LINES)
def test_a_loader_gives_what_pytorchs_gives(name):
    found = []
    for m in (torch, tk):
        m.manual_seed(5)
        try:
            found.append(repr(LINES[name](m, m.utils.data)))
        except Exception as error:
            found.append(error)
    expected, actual = found
    if isinstance(expected, Exception):
        assert isinstance(actual, type(expected)), actual
        assert name in OTHER_WORDS or str(actual).splitlines()[0] == str(expected).splitlines()[0]
    else:
        assert actual == expected


def test_a_data_set_of_ones_own_is_asked_item_by_item():
    class Squares(tk.utils.data.Dataset):
        def __len__(self):
            return 5

        def __getitem__(self, index):
            return tk.tensor(index**2), index

    batches = list(tk.utils.data.DataLoader(Squares(), batch_size=3))
    assert [batch[0].tolist() for batch in batches] == [[0, 1, 4], [9, 16]]


def test_a_change_of_items_by_a_subclass_is_seen():
    class Doubled(tk.utils.data.TensorDataset):
        def __getitem__(self, index):
            return tuple(2 * x for x in super().__getitem__(index))

    ((batch,),) = tk.utils.data.DataLoader(Doubled(tk.ones(2)), batch_size=2)
    assert batch.tolist() == [2, 2]


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": 2},
        {"prefetch_factor": 2},
        {"timeout": 5},
        {"collate_fn": sum},
        {"batch_sampler": [[0]]},
        {"sampler": [0]},
    ],
)
def test_options_of_workers_and_of_ready_batches_are_refused(options):
    (name,) = options
    with pytest.raises(tk.errors.NotSupportedError, match=f"; {name} is not part of tensorkit"):
        tk.utils.data.DataLoader(_data(tk), **options)


def test_pinned_memory_changes_nothing():
    loader = tk.utils.data.DataLoader(_data(tk), 4, num_workers=0, pin_memory=True)
    assert [batch[0].tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
