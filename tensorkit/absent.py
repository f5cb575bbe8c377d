"""Names that PyTorch has and tensorkit does not: asked for, they are refused with a sentence.

Whoever implements one removes it from the list; a test fails until then.
"""

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, NoReturn, TypeVar

from tensorkit.errors import NotSupportedError, message

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
# what to write -> the names that PyTorch has for it
_FAMILIES = {
    "two real tensors (there are no complex numbers)": "complex32 complex64 complex128 cfloat "
    "cdouble chalf complex real imag angle conj polar view_as_real view_as_complex fft stft istft",
    "tk.float16 or tk.float32": "bfloat16",
    "tk.int16 or tk.int64": "uint16 uint32 uint64",
    "dense tensors (there are no sparse ones)": "sparse sparse_coo_tensor sparse_csr_tensor "
    "to_sparse to_sparse_csr to_dense coalesce sparse_mask",
    "nothing: all CPU memory is alike": "pin_memory is_pinned share_memory_ is_shared",
    "nothing: float32 stays float32": "set_float32_matmul_precision get_float32_matmul_precision",
    "x.half() (there is no autocast)": "autocast amp GradScaler",
    "tk.nn.Linear on flattened windows (there is no convolution)": "conv1d conv2d conv3d "
    "convolution conv_transpose1d conv_transpose2d max_pool1d max_pool2d avg_pool1d batch_norm",
    "nothing: all tensors are strided, in contiguous format": "layout strided is_sparse "
    "contiguous_format preserve_format channels_last memory_format",
    "one process (nothing is distributed)": "distributed multiprocessing",
    "tk.cuda.record() and viz.timeline": "profiler",
    "tk.tensor(data, dtype=...)": "BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor "
    "HalfTensor IntTensor LongTensor ShortTensor scalar_tensor new",
    "(x != 0).sum()": "count_nonzero",
    "tk.linalg.inv": "inverse",
    "tk.as_tensor": "asarray",
    "tk.from_numpy(array) and x.cpu().numpy()": "from_dlpack to_dlpack __dlpack__ "
    "__cuda_array_interface__",
    "numpy.finfo and numpy.iinfo of x.numpy().dtype": "finfo iinfo",
    "tk.zeros(size, dtype=x.dtype, device=x.device) and its like": "new_empty new_zeros new_ones "
    "new_full new_tensor",
    "x.expand(size)": "broadcast_tensors",
    "(tk.rand_like(x) < x).to(x.dtype)": "bernoulli",
    "x.copy_(tk.rand_like(x) < p)": "bernoulli_",
    "x.copy_(-(1 - tk.rand_like(x)).log())": "exponential_",
    "mean + std * tk.randn(size)": "normal",
    "tk.randint(low, high, x.shape)": "random_ randint_like",
    "(p / -tk.rand_like(p).log()).argmax(-1), which draws one position": "multinomial",
    "tk.eq, ne, lt, le, gt, ge": "greater greater_equal less less_equal not_equal",
    "tk.neg": "negative",
    "tk.arange": "range",
    "tk.set_default_dtype": "set_default_tensor_type",
    "x.device.type": "is_cpu is_meta is_mps is_xpu get_device",
    "x.numel() and x.dim()": "nelement ndimension",
    "x.clamp(min=..., max=...)": "clamp_min clamp_max",
    "tk.atan": "arctan",
    "x.mT": "H mH adjoint",
    "x.untyped_storage()": "storage",
    "x.reshape, or a new tensor": "unflatten resize_ resize_as_ set_ resize",
    "x.dtype, and x.to(dtype)": "type type_as is_complex is_signed",
    "x.reshape(y.shape), x.expand(y.shape)": "reshape_as expand_as",
    "Python itself (nothing is compiled)": "compile jit fx export func onnx vmap",
    # left out on purpose: other operations do the same
    "tk.from_numpy(numpy.expm1(x.numpy()))": "expm1",
    "tk.log(x) / math.log(2)": "log2",
    "tk.log(x) / math.log(10)": "log10",
    "1 / tk.sqrt(x)": "rsqrt",
    "tk.sin(x) / tk.cos(x)": "tan",
    "tk.atan(x / (1 - x * x).sqrt())": "asin arcsin",
    "tk.pi / 2 - tk.atan(x / (1 - x * x).sqrt())": "acos arccos",
    "(tk.exp(x) - tk.exp(-x)) / 2": "sinh",
    "(tk.exp(x) + tk.exp(-x)) / 2": "cosh",
    "x.repeat, with a number for each dimension,": "tile",
    "tk.cat of slices or zeros": "roll block_diag",
    "tk.ones(n, m).tril() or triu(), then nonzero().t()": "tril_indices triu_indices",
    "(x[..., None] > boundaries).sum(-1)": "bucketize",
    "bool(x)": "is_nonzero",
    "what dir(tk) lists": "hub special testing",
    "x.diagonal().sum()": "trace",
    "numpy.linalg on x.numpy()": "det slogdet svd qr cholesky pinverse matrix_power",
    "x.diagonal(), or tk.eye(n) * x": "diag",
    "tk.cat or tk.stack": "hstack vstack dstack column_stack row_stack",
    "x.split(sizes, dim)": "tensor_split hsplit vsplit",
    "x.flip(0) or x.flip(1)": "flipud fliplr",
    "a[:, None] and b, which broadcast": "meshgrid cartesian_prod",
    "x[..., 1:] - x[..., :-1]": "diff",
    "x @ y.t()": "inner vdot",
    "tk.einsum": "tensordot kron ger addmv addr addbmm baddbmm",
    "(x - y).norm()": "dist",
    "(x[:, None] - y).norm(dim=-1)": "cdist",
    "x + weight * (y - x)": "lerp",
    "tk.from_numpy(numpy.arctan2(y.numpy(), x.numpy()))": "atan2 arctan2",
    "1 - tk.erf(x.double()), which is 0 beyond 6,": "erfc",
    "(x.abs() % abs(y)) * x.sign()": "fmod",
    "tk.where(x.isnan(), 0.0, x), and clamp for infinities,": "nan_to_num",
    "x[~x.isnan()] and its mean, sum, sort": "nanmean nansum nanmedian",
    "x.sort().values, by position": "median msort kthvalue quantile",
    "(x[:, None] == y).any(1)": "isin",
    "x[index] = values": "index_copy_ index_fill_ masked_scatter_ put_ index_copy index_fill "
    "index_put index_put_ masked_scatter put",
    "nothing: NumPy counts its own threads": "get_num_threads set_num_threads",
    "nothing: the CPU computes the same each time": "use_deterministic_algorithms",
    "x.copy_(x == y) and its like": "eq_ ne_ lt_ le_ gt_ ge_",
    "x.as_strided": "unfold",
    "2.0 ** x": "exp2",
    "tk.logsumexp(tk.stack((x, y)), 0)": "logaddexp",
    "x + value * y * z or x + value * y / z": "addcmul addcdiv",
    "two calls, as x.amin() and x.amax(),": "aminmax var_mean std_mean",
    "x[tk.cat((tk.tensor([True]), x[1:] != x[:-1]))]": "unique_consecutive",
    "x.nonzero()": "argwhere",
    "x.flatten()[index]": "take",
    "10 ** tk.linspace(a, b, n)": "logspace",
    "tk.manual_seed": "get_rng_state set_rng_state",
    "NumPy's function of this name, with x.numpy(),": "cumprod searchsorted copysign "
    "heaviside fmax fmin signbit frexp ldexp nextafter gcd lcm sinc i0 deg2rad rad2deg rot90 cross "
    "cov corrcoef gradient trapezoid histogram nanquantile isposinf isneginf unravel_index vander "
    "diagflat atleast_1d atleast_2d arcsinh arccosh arctanh asinh acosh atanh",
    "numpy.maximum.accumulate and minimum.accumulate of x.numpy()": "cummax cummin",
    "(tk.zeros(a) + tk.zeros(b)).shape": "broadcast_shapes",
    "tk.log(x / (1 - x))": "logit",
    "x.bincount().argmax(), for integers": "mode",
    "x.transpose or x.movedim": "swapdims moveaxis",
    "x[..., None] * tk.eye(n)": "diag_embed",
    "x[(range(min(x.shape)),) * x.dim()] = value": "fill_diagonal_",
    "scatter_add, for sums": "scatter_reduce index_reduce",
}
# the same for torch.nn, torch.nn.functional, torch.optim and torch.cuda
_PARTS = {
    "tk.autograd.grad(y, x, v)": "vjp",
    "(jacobian(func, x) * v).flatten(y.dim()).sum(-1) with y = func(x)": "jvp",
    "a new tensor as the result, x.clone(),": "mark_dirty",
    "y.detach() after y = F.apply(x)": "mark_non_differentiable",
    "nothing: the gradient of a Function's one result is never None": "set_materialize_grads",
    "tk.autograd.recording() around the forward": "detect_anomaly set_detect_anomaly",
    "tk.nn.Linear on flattened windows (there is no convolution)": "Conv1d Conv2d Conv3d "
    "ConvTranspose1d ConvTranspose2d MaxPool1d MaxPool2d AvgPool1d AvgPool2d AdaptiveAvgPool2d "
    "MaxPool3d AdaptiveAvgPool1d AdaptiveMaxPool2d Unfold Fold avg_pool2d adaptive_avg_pool2d",
    "tk.nn.LayerNorm": "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d "
    "InstanceNorm2d RMSNorm group_norm instance_norm rms_norm",
    "tk.nn.Linear in a loop over time": "RNN LSTM GRU RNNCell LSTMCell GRUCell",
    "softmax(q @ k.mT / d**0.5, -1) @ v": "MultiheadAttention scaled_dot_product_attention "
    "Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder",
    "tk.optim.Adam or tk.optim.SGD": "RMSprop Adagrad Adadelta Adamax NAdam RAdam LBFGS ASGD Rprop",
    'group["lr"] *= 0.1 for the one group of optimizer.param_groups': "lr_scheduler",
    "tk.nn.ModuleList, or attributes": "ModuleDict ParameterList ParameterDict",
    "the function of tk.nn.functional in forward": "Softplus LogSoftmax",
    "self.name = module": "add_module register_module",
    "for part in model.modules(): f(part)": "apply",
    "nothing: a model without this layer gives the same": "Identity",
    "p.grad.mul_(min(1.0, most / norm)) for each parameter": "utils",
    ".to(tk.float64) and so on": "float double half",
    "tk.nn.Parameter(x, False), as an attribute": "register_buffer register_parameter buffers "
    "named_buffers Buffer get_buffer",
    "tk.nn.init.normal_(w, 0, (2 / w.shape[1]) ** 0.5)": "kaiming_normal_ kaiming_uniform_",
    "tk.nn.init.normal_(w, 0, (2 / sum(w.shape)) ** 0.5)": "xavier_normal_ xavier_uniform_",
    "memory_allocated and memory_reserved": "memory_stats memory_summary max_memory_reserved",
    "get_device_properties(), with major and minor,": "get_device_capability",
    "tk.nn.Sequential(*parts)": "extend insert pop",
    "an optimizer for each group of parameters": "add_param_group",
    "optimizer.param_groups[0]": "defaults",
    "DataLoader(data, batch_size, shuffle=True)": "RandomSampler SequentialSampler BatchSampler "
    "Sampler SubsetRandomSampler WeightedRandomSampler",
    "a Dataset of your own, with __len__ and __getitem__": "ConcatDataset IterableDataset",
    "one process (nothing is distributed)": "DataParallel DistributedSampler parallel",
    "the tensor itself, with requires_grad=True,": "Variable",
    "manual_seed(seed), which starts the numbers anew": "get_state set_state clone_state",
    "tk.nn.functional.dropout(tk.ones(n, c, 1, 1)) * x": "Dropout1d Dropout2d Dropout3d dropout2d",
    "tk.nn.Embedding(n, d)(x).mean(1)": "EmbeddingBag embedding_bag",
    "x.repeat_interleave(2, -1).repeat_interleave(2, -2)": "Upsample interpolate",
    "tk.nn.init.normal_(w, 0, std)": "orthogonal_ trunc_normal_",
    "nothing: one CUDA device has one stream": "Stream stream current_stream default_stream",
    "tk.manual_seed": "seed seed_all manual_seed_all get_rng_state_all set_rng_state_all",
    "x.norm()": "norm vector_norm",
    "numpy.linalg on x.numpy()": "eig eigh eigvals eigvalsh lstsq pinv matrix_rank cond",
    "x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)": "normalize",
    "(x * y).sum(1) / (x.norm(dim=1) * y.norm(dim=1))": "cosine_similarity CosineSimilarity",
    "tk.cat with tk.zeros": "pad ZeroPad2d ConstantPad1d",
    "x.clamp(0, 6)": "relu6 ReLU6",
    "x.reshape in forward": "Unflatten",
    "(x - y).norm(dim=1)": "PairwiseDistance pairwise_distance",
    "tk.where(x > 0, x, x.clamp(max=0).exp() - 1)": "elu ELU",
    "tk.nn.MSELoss or L1Loss": "SmoothL1Loss HuberLoss smooth_l1_loss huber_loss",
    "(y * (y.log() - x)).mean(), for y > 0,": "KLDivLoss kl_div",
    "tk.where(x > 0, x, slope * x)": "PReLU prelu",
    "its formula in forward, as in x * x.sigmoid(),": "SELU selu CELU celu Mish mish GLU glu "
    "Softsign softsign TripletMarginLoss triplet_margin_loss MarginRankingLoss margin_ranking_loss "
    "CTCLoss ctc_loss gumbel_softmax "
    "Hardtanh hardtanh Hardsigmoid hardsigmoid Hardswish hardswish LogSigmoid logsigmoid",
    'tk.device("cuda") if tk.cuda.is_available()': "current_accelerator",
    "get_device_properties().total_memory, less memory_reserved(),": "mem_get_info",
    "forward itself": "register_forward_hook register_forward_pre_hook register_full_backward_hook",
    "dict(model.named_parameters())[name], or named_modules,": "get_parameter get_submodule",
    "model.children()": "named_children",
}
# What to do without an option that PyTorch has -> the names of such options
_OPTIONS = {
    "y = f(x), then result.copy_(y)": "out",
    "correction=0 for unbiased=False, correction=1 for unbiased=True": "unbiased",
    "beta * x + alpha * (a @ b)": "beta alpha",
    "loss.backward() before optimizer.step()": "closure",
    "(-loss).backward()": "maximize",
    'reduction="none", and a mean of your own with the weights': "weight pos_weight",
    'scatter_add, or of a loss reduction="none", "mean" or "sum"': "size_average reduce",
    '[p for name, p in model.named_parameters() if "." not in name]': "recurse",
    "a loop over named_parameters(), or state_dict(), which has all names of shared ones": (
        "keep_vars prefix remove_duplicate"
    ),
    "layer(i) * (i != padding_idx)[..., None], which is 0 there and has no gradient": "padding_idx",
    "layer.bias.requires_grad_(False), which then stays 0": "bias",
    "layer.requires_grad_(False): the scale stays 1, the shift 0": "elementwise_affine",
    "without it, which computes something else": "amsgrad dampening decoupled_weight_decay "
    "max_norm nesterov norm_type scale_grad_by_freq",
    "a call for each of the gradients": "is_grads_batched",
    "x[y != ignore_index], y[y != ignore_index]": "ignore_index",
    "(1 - s) * cross_entropy(x, y) - s * x.log_softmax(-1).mean()": "label_smoothing",
    "x.to(dtype), layer.to(dtype); of view: tk.from_numpy(x.numpy().view(...))": "dtype out_dtype",
    "x = f(x)": "inplace",
    'x // y for "floor", (x / y).trunc() for "trunc" of floating-point numbers': "rounding_mode",
    "(x * 10**n).round() / 10**n": "decimals",
    "tk.zeros(n).index_add(0, x, weights)": "weights",
    "tk.manual_seed(0)": "generator",
    "a data set whose items are such tensors": "collate_fn",
    "tk.utils.data.Subset(data, indices), shuffle=False": "sampler batch_sampler",
    "leave it out": "assign blocking capturable differentiable fast_mode foreach fused in_order "
    "layout memory_format multiprocessing_context nondet_tol num_workers only_inputs timeout "
    "output_size persistent_workers pin_memory pin_memory_device prefetch_factor sparse "
    "sparse_grad strict vectorize worker_init_fn",
}
# what changes nothing: PyTorch's defaults; of all others None, False or 0
_DEFAULTS = {"alpha": "1", "beta": "1", "ignore_index": "-100", "norm_type": "2.0"}
_DEFAULTS |= dict.fromkeys(["max_norm", "padding_idx", "reduce", "size_average"], "None")
_ON = "bias elementwise_affine in_order only_inputs recurse remove_duplicate unbiased"
_DEFAULTS |= dict.fromkeys(_ON.split(), "True")
NUMPYS_NAMES = {"axis": "dim", "axis0": "dim0", "axis1": "dim1", "keepdims": "keepdim"}


def _by_name(families: dict[str, str]) -> dict[str, str]:
    return {name: instead for instead, names in families.items() for name in names.split()}


_INSTEAD = _by_name(_FAMILIES)
_OF_PARTS = _by_name(_PARTS)
OPTIONS = _by_name(_OPTIONS)
OF_TENSORS = frozenset(_INSTEAD)


class Attribute(str):
    """The name of an attribute that tensors lack: reading it raises the sentence about it.

    One for each name, because with a ``__getattr__`` CPython 3.11 would look up all attributes of
    all tensors the slow way.
    """

    __slots__ = ()

    def __get__(self, x: object, owner: type) -> NoReturn:
        raise AttributeError(sentence("Tensor", self))


def sentence(owner: str, name: str, kind: str = "") -> str:
    """What is said about a name that is missing; of one that PyTorch has, what to use instead.

    ``kind``: the class of an object that lacks it.
    """
    instead = _INSTEAD.get(name) or (_OF_PARTS.get(name) if "." in owner else None)
    if instead is None and name[-1:] == "_":  # a form in place
        plain = f"x.{name[:-1]}(...)" if owner == "Tensor" else None
        plain = _INSTEAD.get(name[:-1], plain) if "." not in owner else None
        instead = plain and f"x = {plain}"
    if instead is not None and instead.startswith("nothing"):
        return f"{owner}.{name} is not part of tensorkit; leave it out{instead[7:]}"
    if instead is not None:
        return f"{owner}.{name} is not part of tensorkit; use {instead} instead"
    if kind or owner == "Tensor":
        return f"'{kind or owner}' object has no attribute '{name}'"
    module = owner.replace("torch", "tensorkit")
    advice = f"dir({owner.replace('torch', 'tk')}) lists what it has"
    return f"module '{module}' has no attribute '{name}'; {advice}"


def missing(module: str) -> Callable[[str], NoReturn]:
    """The ``__getattr__`` of a module, by PyTorch's name of it."""

    def refuse(name: str) -> NoReturn:
        raise AttributeError(sentence(module, name))

    return refuse


def known_options(owner: str, has: Collection[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a call by their names here, which may be NumPy's; ``has``: those of the owner.

    NotSupportedError for an option of PyTorch's that is missing and would mean something, TypeError
    for one that PyTorch does not have either.

    >>> from tensorkit import absent
    >>> absent.known_options("sum", ["input", "dim"], {"axis": 1, "out": None})
    {'dim': 1}
    >>> absent.known_options("SGD", ["lr", "momentum"], {"nesterov": True})
    Traceback (most recent call last):
    tensorkit.errors.NotSupportedError: SGD has lr, momentum; nesterov is not part of tensorkit
    ...
    """
    found = {}
    for name, value in given.items():
        own = NUMPYS_NAMES.get(name, name)
        if own in has:
            found[own] = value
        elif name not in OPTIONS:
            raise TypeError(f"{owner}() got an unexpected keyword argument '{name}'") from None
        elif repr(value) not in _DEFAULTS.get(name, "None False 0 0.0 ''").split():
            first = f"{owner} has {', '.join(has) or 'no options'}; {name} is not part of tensorkit"
            raise NotSupportedError(first, repair=OPTIONS[name]) from None
    return found


def explains_options(function: AnyFunction) -> AnyFunction:
    """Let a function that is no operation of ``@op`` say which options it lacks."""

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            return call_again(function, args, options, error)

    return call  # type: ignore[return-value]


def call_again(
    function: Callable[..., Any], args: Any, options: dict[str, Any], error: TypeError
) -> Any:
    """What a call gives that ended in ``error``, if its options are known; else that error."""
    parameters = {**signature(function).parameters}
    given = args[1:] if parameters.pop("self", None) else args
    kinds = [each.kind for each in parameters.values()]
    if Parameter.VAR_KEYWORD not in kinds:
        known = known_options(function.__name__, parameters, options)
        if known.keys() != options.keys():
            return function(*args, **known)
    names = [name for name, each in parameters.items() if each.kind is not each.VAR_KEYWORD]
    most = len(names) - kinds.count(Parameter.KEYWORD_ONLY)
    if len(given) > most and Parameter.VAR_POSITIONAL not in kinds:
        raise wrong_arguments(str(error), names) from None
    raise error


def wrong_arguments(first: str, has: Collection[str]) -> TypeError:
    """The error of a call with too many or too few arguments, which says what there is."""
    return TypeError(message(first, f"Parameters: {', '.join(has) or 'none'}."))
