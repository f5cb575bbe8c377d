"""Data sets, and the loader that makes batches of them, in PyTorch's order for a seed.

A data set has a length and items; a sampler gives the order of the indices; the loader collects
the items of a batch and stacks them. All work is done in this process.
"""

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensorkit import dtypes
from tensorkit._tensor import Tensor
from tensorkit.base import TensorBase
from tensorkit.data import as_tensor, tensor
from tensorkit.devices import CPU, Device
from tensorkit.errors import NotSupportedError, message
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
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _from_fractions(lengths, total)
    if sum(lengths) != total:
        raise ValueError(
            message(
                "Sum of input lengths does not equal the length of the input dataset!",
                f"The lengths add up to {sum(lengths)}, the data set has {total} items.",
            )
        )
    order = generator.permutation(total).tolist()
    ends = list(itertools.accumulate(int(length) for length in lengths))
    starts = [0, *ends[:-1]]
    return [Subset(dataset, order[a:b]) for a, b in zip(starts, ends, strict=True)]


def _from_fractions(fractions: Sequence[float], total: int) -> list[int]:
    for place, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {place} is not between 0 and 1")
    lengths = [math.floor(total * fraction) for fraction in fractions]
    for place in range(total - sum(lengths)):  # what rounding left over goes round
        lengths[place % len(lengths)] += 1
    for place, length in enumerate(lengths):
        if length == 0:
            warnings.warn(
                f"Length of split at index {place} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return lengths


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
        if not len(data_source):
            raise ValueError(
                "num_samples should be a positive integer value, but got num_samples=0"
            )

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
            if len(batch) < self.batch_size and self.drop_last:
                return
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
    if isinstance(first, TensorBase):
        return stack(list(batch), 0)
    if isinstance(first, (np.ndarray, np.generic)):
        return stack([as_tensor(each) for each in batch], 0)
    if isinstance(first, float):
        return tensor(list(batch), dtype=dtypes.float64)
    if isinstance(first, int):
        return tensor(list(batch))
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


def default_convert(item: Any) -> Any:
    """An item that is no part of a batch: arrays as tensors, all else as it is."""
    if isinstance(item, np.ndarray):
        return as_tensor(item)
    if isinstance(item, Mapping):
        return {key: default_convert(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [default_convert(each) for each in item]
    return item


def _refuse_workers(count: int, prefetch_factor: int | None, persistent: bool) -> None:
    if count:
        raise NotSupportedError(
            "tensorkit loads data in this process only",
            repair="num_workers=0, without prefetch_factor and persistent_workers",
        )
    if prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers "
            "> 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if persistent:
        raise ValueError("persistent_workers option needs num_workers > 0")


class DataLoader:
    """Batches of a data set; going through it once is an epoch.

    What PyTorch's takes for its workers and for pinned memory is taken, and changes nothing.

    >>> data = tk.utils.data.TensorDataset(tk.arange(5))
    >>> [batch.tolist() for (batch,) in tk.utils.data.DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
    ) -> None:
        _refuse_workers(num_workers, prefetch_factor, persistent_workers)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        elif batch_size is not None and (not isinstance(batch_size, int) or batch_size <= 0):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if sampler is None:
            sampler = (
                RandomSampler(dataset, generator=generator)
                if shuffle
                else SequentialSampler(dataset)
            )
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.collate_fn = collate_fn or (default_collate if batch_sampler else default_convert)
        self.generator = generator

    def __iter__(self) -> Iterator[Any]:
        # PyTorch seeds its workers with this number, and draws it also where there are none
        _seed(self.generator or default_generator)
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        if self.batch_sampler is None:  # items one by one, not stacked
            for index in self.sampler:
                yield self.collate_fn(self.dataset[index])
            return
        fetch = _whole(self.dataset) if self.collate_fn is default_collate else None
        for indices in self.batch_sampler:
            if fetch is None:
                yield self.collate_fn([self.dataset[index] for index in indices])
            else:
                yield fetch(list(indices))

    def __len__(self) -> int:
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


def _whole(dataset: Any) -> Callable[[list[int]], Any] | None:
    """How to take a whole batch at once, which stacking item by item would only give slower."""
    if type(dataset) is Subset:
        inner = _whole(dataset.dataset)
        return inner and (lambda indices: inner([dataset.indices[each] for each in indices]))
    if type(dataset) is TensorDataset and not any(x.requires_grad for x in dataset.tensors):
        devices = {x.device for x in dataset.tensors} - {CPU}
        if not devices:
            return lambda indices: [x[indices] for x in dataset.tensors]
        return lambda indices: _picked(dataset.tensors, devices, indices)
    return None


def _picked(tensors: Iterable[Tensor], devices: Iterable[Device], indices: list[int]) -> Any:
    """The rows of all tensors at ``indices``, which are sent to each device once."""
    there = {device: tensor(indices, device=device) for device in devices}
    return [x[there.get(x.device, indices)] for x in tensors]
