"""Data sets, and the loader that makes batches of them, in PyTorch's order for a seed.

A data set has a length and items; a sampler gives the order of the indices; the loader collects
the items of a batch and stacks them. All work is done in this process.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorkit import absent, dtypes
from tensorkit._tensor import Tensor
from tensorkit.creation import as_tensor, tensor
from tensorkit.errors import message
from tensorkit.ops.joining import stack
from tensorkit.random import Generator, default_generator

# Data sets


class Dataset:
    """Something with items; a subclass defines ``__getitem__`` and ``__len__``."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")


class TensorDataset(Dataset):
    """Item ``i`` is the tuple of the ``i``-th entries of several tensors.

    >>> data = tk.utils.data.TensorDataset(tk.arange(3), tk.ones(3))
    >>> len(data), data[2]
    (3, (tensor(2), tensor(1.)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(len(tensors[0]) != len(tensor) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class Subset(Dataset):
    """The items of a data set at ``indices``."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[int], generator: Generator = default_generator
) -> list[Subset]:
    """The items of a data set, shuffled and dealt to parts of these lengths.

    Raises ValueError unless the lengths add up to that of the data set.

    >>> train, test = tk.utils.data.random_split(range(10), [8, 2])
    >>> len(train), len(test)
    (8, 2)
    """
    total = len(dataset)
    if sum(lengths) != total:
        first = "Sum of input lengths does not equal the length of the input dataset!"
        raise ValueError(
            message(
                first,
                f"{list(lengths)} do not deal out {total} items.",
                repair=f"random_split(data, [n, {total} - n])    # lengths, no fractions",
            )
        )
    order = iter(generator.permutation(total).tolist())
    return [Subset(dataset, list(itertools.islice(order, count))) for count in lengths]


# Batches


def default_collate(batch: Sequence[Any]) -> Any:
    """The items of a batch as one: tensors stacked, numbers as a tensor, tuples item by item.

    Raises TypeError for any other kind of item.

    >>> tk.utils.data.default_collate([(tk.tensor([1., 2.]), 0), (tk.tensor([3., 4.]), 1)])
    [tensor([[1., 2.],
            [3., 4.]]), tensor([0, 1])]
    """
    first = batch[0]
    if isinstance(first, (Tensor, np.ndarray, np.generic)):
        return stack([as_tensor(each) for each in batch], 0)
    if isinstance(first, (float, int)):
        return tensor(list(batch), dtype=dtypes.float64 if isinstance(first, float) else None)
    if isinstance(first, (tuple, list)):
        if any(len(each) != len(first) for each in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(each) for each in zip(*batch, strict=True)]
    first_line = f"the items of a batch are tensors, arrays, numbers or tuples, not {type(first)}"
    raise TypeError(message(first_line, repair="a data set whose items are such tuples"))


class DataLoader:
    """Batches of a data set; going through it once is an epoch.

    What PyTorch's takes for pinned memory is taken, and changes nothing.

    >>> data = tk.utils.data.TensorDataset(tk.arange(5))
    >>> [batch.tolist() for (batch,) in tk.utils.data.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool | None = None,
        *,
        drop_last: bool = False,
        generator: Generator | None = None,
        pin_memory: bool = False,
        **others: Any,
    ) -> None:
        has = ["dataset", "batch_size", "shuffle", "drop_last", "generator"]
        absent.known_options("DataLoader", has, others)
        if not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        self.dataset = dataset
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.generator = generator

    @property
    def sampler(self) -> Iterator[int]:
        """The indices in order or shuffled, in another order each time.

        Without a ``generator`` each order has one of its own, seeded from the default generator.
        """
        if not self.shuffle:
            yield from range(len(self.dataset))
            return
        generator = self.generator or Generator().manual_seed(_seed(default_generator))
        yield from generator.permutation(len(self.dataset)).tolist()
        if self.generator:  # PyTorch draws one order more, of which it takes nothing
            generator.permutation(len(self.dataset))

    @property
    def batch_sampler(self) -> Iterator[list[int]]:
        """Lists of ``batch_size`` indices; ``drop_last`` leaves out a last one that is shorter."""
        indices = self.sampler
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __iter__(self) -> Iterator[Any]:
        # PyTorch seeds its workers with this number, and draws it also where there are none
        _seed(self.generator or default_generator)
        return map(self._batch, self.batch_sampler)

    def _batch(self, indices: list[int]) -> Any:
        data = self.dataset
        while type(data) is Subset:
            data, indices = data.dataset, [data.indices[index] for index in indices]
        if type(data) is TensorDataset and not any(x.requires_grad for x in data.tensors):
            return list(data[indices])  # which is quicker than item by item
        return default_collate([data[index] for index in indices])

    def __len__(self) -> int:
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


def _seed(generator: Generator) -> int:
    """A number to seed another generator with."""
    return int(generator.long_words(1)[0]) % 2**63


__getattr__ = absent.missing("torch.utils.data")
