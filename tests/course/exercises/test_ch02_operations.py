"""Chapter 02. RIGHT: other right answers, which test_right_answers tries."""

from __future__ import annotations

import tensorkit as tk


def softplus_with_a_mask(x):
    result = x.clone()
    small = x < 0
    result[small] = tk.log(1 + tk.exp(x[small]))
    result[~small] += tk.log(1 + tk.exp(-x[~small]))
    return result


def softplus_with_where(x):
    return tk.where(x > 0, x, tk.zeros_like(x)) + tk.log1p(tk.exp(tk.where(x > 0, -x, x)))


def brighter_in_a_copy(pixels, amount):
    own = pixels.clone()
    own += amount
    own.clamp_(min=0, max=255)
    return own


def brighter_with_where(pixels, amount):
    sums = pixels.add(amount)
    sums[sums < 0] = 0
    sums[sums > 255] = 255
    return sums


def dense_with_matmul(x, weight, bias):
    return tk.matmul(x, weight.transpose(0, 1)).add(bias)


def dense_turned(x, weight, bias):
    return (weight @ x.T).T + bias


def batch_product_by_sums(a, b):
    return tk.stack([(x[:, :, None] * y[None]).sum(dim=1) for x, y in zip(a, b, strict=True)])


def batch_product_in_place(a, b):
    result = tk.zeros(a.shape[0], a.shape[1], b.shape[2], dtype=a.dtype)
    for i in range(len(a)):
        result[i] = tk.mm(a[i], b[i])
    return result


def standard_rows_turned(x):
    turned = x.T
    return ((turned - turned.mean(dim=0)) / turned.std(dim=0)).T


def standard_rows_by_hand(x):
    n = x.shape[1]
    centred = x - x.sum(dim=1, keepdim=True) / n
    return centred / ((centred * centred).sum(dim=1, keepdim=True) / (n - 1)).sqrt()


def block_means_by_loop(x, size):
    means = [x[i : i + size].mean().item() for i in range(0, len(x), size)]
    return tk.tensor(means, dtype=x.dtype)


def block_means_from_sums(x, size):
    return x.reshape(len(x) // size, size).sum(dim=1) / size


def ensemble_by_loop(predictions):
    total = tk.zeros_like(predictions[0])
    for prediction in predictions:
        total += prediction
    average = total / len(predictions)
    return average, average.max(dim=1).indices


def ensemble_joined(predictions):
    shape = predictions[0].shape
    joined = tk.cat(predictions).reshape(len(predictions), *shape)
    return joined.mean(0), joined.mean(0).argmax(-1)


RIGHT = [
    ("softplus", softplus_with_a_mask),
    ("softplus", softplus_with_where),
    ("brighter", brighter_in_a_copy),
    ("brighter", brighter_with_where),
    ("dense", dense_with_matmul),
    ("dense", dense_turned),
    ("batch-product", batch_product_by_sums),
    ("batch-product", batch_product_in_place),
    ("standard-rows", standard_rows_turned),
    ("standard-rows", standard_rows_by_hand),
    ("block-means", block_means_by_loop),
    ("block-means", block_means_from_sums),
    ("ensemble", ensemble_by_loop),
    ("ensemble", ensemble_joined),
]
