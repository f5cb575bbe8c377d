"""Chapter 03. RIGHT: answers that test_right_answers tries; its references agree with tensorkit."""

from __future__ import annotations

import math

import pytest

import tensorkit as tk
from course.exercises.ch03_memory.contiguous_by_hand import contiguous_by_hand


def position_by_numbers(index, stride, offset):
    for dim in range(len(index)):
        offset += stride[dim] * index[dim]
    return offset


def position_by_a_product(index, stride, offset):
    return offset + sum(map(math.prod, zip(index, stride, strict=True)))


def transposed_by_a_list_of_dimensions(shape, stride, a, b):
    order = list(range(len(shape)))
    order[a], order[b] = order[b], order[a]
    return tuple(shape[d] for d in order), tuple(stride[d] for d in order)


def transposed_by_the_library(shape, stride, a, b):
    size = 1 + sum(max(n - 1, 0) * s for n, s in zip(shape, stride, strict=True))
    turned = tk.zeros(size).as_strided(shape, stride).transpose(a, b)
    return tuple(turned.shape), turned.stride()


def contiguous_by_products(shape, stride):
    if math.prod(shape) == 0:
        return True
    return all(
        size == 1 or step == math.prod(shape[dim + 1 :])
        for dim, (size, step) in enumerate(zip(shape, stride, strict=True))
    )


def contiguous_by_squeezing(shape, stride):
    pairs = [(n, s) for n, s in zip(shape, stride, strict=True) if n != 1]
    expected = 1
    for size, step in pairs[::-1]:
        if size == 0:
            return True
        expected, fits = expected * size, step == expected
        if not fits:
            return 0 in shape
    return True


def stereo_by_strides(samples):
    (step,) = samples.stride()
    moments = len(samples) // 2
    return samples.as_strided((2, moments), (step, 2 * step), samples.storage_offset())


def stereo_by_reshape(samples):
    return samples.reshape(len(samples) // 2, 2).transpose(0, 1)


def channels_moved_twice(photos):
    return (photos.transpose(2, 3).transpose(1, 2) / 255).contiguous()


def channels_first_then_scaled(photos):
    return photos.permute(0, 3, 1, 2).contiguous().to(tk.float32) / 255.0


def batch_by_index(batch):
    return batch[0]


def batch_by_view(batch):
    return batch.view(batch.shape[1:])


def windows_from_a_slice(x, size):
    own = x.stride(0)
    return x[:size].as_strided((len(x) - size + 1, size), (own, own))


def windows_in_place(x, size):
    rows = x.shape[0] + 1 - size
    return tk.as_strided(x, [rows, size], [x.stride()[0]] * 2, x.storage_offset())


def chain_by_factors(A, B):
    flat = (B.T @ A.T).reshape(-1)
    return flat, flat.argmax().item()


def chain_by_max(A, B):
    flat = tk.matmul(A, B).transpose(0, 1).flatten()
    return flat, flat.tolist().index(max(flat.tolist()))


RIGHT = [
    ("position-of", position_by_numbers),
    ("position-of", position_by_a_product),
    ("transposed-layout", transposed_by_a_list_of_dimensions),
    ("transposed-layout", transposed_by_the_library),
    ("contiguous-by-hand", contiguous_by_products),
    ("contiguous-by-hand", contiguous_by_squeezing),
    ("stereo", stereo_by_strides),
    ("stereo", stereo_by_reshape),
    ("channels-first", channels_moved_twice),
    ("channels-first", channels_first_then_scaled),
    ("without-batch", batch_by_index),
    ("without-batch", batch_by_view),
    ("sliding-windows", windows_from_a_slice),
    ("sliding-windows", windows_in_place),
    ("product-chain", chain_by_factors),
    ("product-chain", chain_by_max),
]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 4), (4, 1), (2, 0, 3), (2, 3, 4)])
def test_contiguous_means_what_the_library_means(shape):
    x = tk.zeros(2, 3, 4, 5).reshape(-1)[: math.prod(shape)].reshape(shape)
    views = [x, *([x.transpose(0, -1), x.transpose(0, -1)[::2]] if shape else [])]
    for view in views:
        by_hand = contiguous_by_hand(tuple(view.shape), view.stride())
        assert by_hand == view.is_contiguous(), (view.shape, view.stride())
