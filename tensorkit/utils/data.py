"""Data sets, and the loader that makes batches of them, in PyTorch's order for a seed.

A data set has a length and items; a sampler gives the order of the indices; the loader collects
the items of a batch and stacks them. All work is done in this process.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit._tensor import Tensor
from tensorkit.creation import as_tensor, tensor
from tensorkit.errors import message, refuse_options
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
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError(
                message(
                    "Size mismatch between tensors",
                    f"Their first dimensions are {[tensor.size(0) for tensor in tensors]}.",
                )
            )
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class Subset(Dataset):
    """The items of a data set at ``indices``."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[float], generator: Generator = default_generator
) -> list[Subset]:
    """The items of a data set, shuffled and dealt to parts of these lengths or fractions.

    Raises ValueError unless the lengths add up to that of the data set.

    >>> train, test = tk.utils.data.random_split(range(10), [0.8, 0.2])
    >>> len(train), len(test)
    (8, 2)
    """
    total = len(dataset)
    counts: list[Any] = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        counts = [math.floor(total * fraction) for fraction in lengths]
        for place in range(total - sum(counts)):  # what rounding left over goes round
            counts[place % len(counts)] += 1
    if sum(counts) != total or min(lengths) < 0:
        raise ValueError(
            message(
                "Sum of input lengths does not equal the length of the input dataset!",
                f"The lengths {list(lengths)} do not deal out {total} items.",
            )
        )
    order = iter(generator.permutation(total).tolist())
    return [Subset(dataset, list(itertools.islice(order, int(count)))) for count in counts]


# Samplers


class SequentialSampler:
    """Indices in their order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(SequentialSampler):
    """Indices in random order, another one each time.

    Without a ``generator`` each order has a generator of its own, seeded from the default one.
    """

    def __init__(self, data_source: Any, *, generator: Generator | None = None) -> None:
        super().__init__(data_source)
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        generator = self.generator or Generator().manual_seed(_seed(default_generator))
        yield from generator.permutation(len(self.data_source)).tolist()
        if self.generator:  # PyTorch draws one order more, of which it takes nothing
            generator.permutation(len(self.data_source))


def _seed(generator: Generator) -> int:
    """A number to seed another generator with."""
    return int(generator.long_words(1)[0]) % 2**63


class BatchSampler:
    """Lists of ``batch_size`` indices; ``drop_last`` leaves out a last one that is shorter."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return whole + (rest > 0 and not self.drop_last)


# Batches


def default_collate(batch: Sequence[Any]) -> Any:
    """The items of a batch as one: tensors stacked, numbers as a tensor, tuples item by item.

    >>> tk.utils.data.default_collate([(tk.tensor([1., 2.]), 0), (tk.tensor([3., 4.]), 1)])
    [tensor([[1., 2.],
            [3., 4.]]), tensor([0, 1])]
    """
    first = batch[0]
    if isinstance(first, (Tensor, np.ndarray, np.generic)):
        return stack([as_tensor(each) for each in batch], 0)
    if isinstance(first, (float, int)):
        return tensor(list(batch), dtype=dtypes.float64 if isinstance(first, float) else None)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate([each[key] for each in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(each) != len(first) for each in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(each) for each in zip(*batch, strict=True)]
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{type(first)}"
    )


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
        sampler: Any = None,
        *,
        collate_fn: Callable[[list[Any]], Any] = default_collate,
        pin_memory: bool = False,
        drop_last: bool = False,
        generator: Generator | None = None,
        **others: Any,
    ) -> None:
        has = "batch_size, shuffle, sampler, collate_fn, drop_last, generator"
        refuse_options("DataLoader", has, others)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if not isinstance(batch_size, int) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if sampler is None and shuffle:
            sampler = RandomSampler(dataset, generator=generator)
        elif sampler is None:
            sampler = SequentialSampler(dataset)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.collate_fn = collate_fn
        self.generator = generator

    def __iter__(self) -> Iterator[Any]:
        # PyTorch seeds its workers with this number, and draws it also where there are none
        _seed(self.generator or default_generator)
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        at_once = self.collate_fn is default_collate and _is_taken_at_once(self.dataset)
        for indices in self.batch_sampler:
            if at_once:
                yield list(self.dataset[indices])
            else:
                yield self.collate_fn([self.dataset[index] for index in indices])

    def __len__(self) -> int:
        return len(self.batch_sampler)


def _is_taken_at_once(dataset: Any) -> bool:
    """Whether indexing with a list gives a whole batch, which is quicker than item by item."""
    if type(dataset) is Subset:
        return _is_taken_at_once(dataset.dataset)
    return type(dataset) is TensorDataset and not any(x.requires_grad for x in dataset.tensors)
