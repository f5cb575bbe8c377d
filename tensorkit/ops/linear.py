"""``linear``: the product and the sum of a layer, with the refusal that names the layer."""

from tensorkit.base import Tensor
from tensorkit.ops.arguments import need_tensor
from tensorkit.ops.products import addmm, refuse_sizes
from tensorkit.ops.views import t


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """``x @ weight.t() + bias`` of a matrix ``x``, or what ``addmm`` raises."""
    need_tensor("linear", x)
    need_tensor("linear", weight, "weight", 2)
    need_tensor("linear", bias, "bias", 3)
    turned = t(weight)
    given, taken = x._array.shape, turned._array.shape
    if len(given) == len(taken) == 2 and given[1] != taken[0]:
        refuse_sizes(given, taken, of_layer=True)
    return addmm(bias, x, turned)
