"""Kernels as programs of their own, in C++ for the host or in CUDA C: the loop around the code."""

from tensorkit.kernels import Reduction

KINDS = {"T": "{kind}", "bool": "unsigned char", "int64": "long"}


def _pairs(text):
    return [tuple(each.split()[-2:]) for each in text.split(", ")]


def raw(kernel):
    """The names of the arrays that the code indexes itself."""
    return [each.split()[2] for each in kernel.inputs.split(", ") if each.startswith("raw ")]


def parameters(kernel):
    """(kind, name, whether it is written to) of each array."""
    found = [(kind, name, False) for kind, name in _pairs(kernel.inputs)]
    return found + [(kind, name, True) for kind, name in _pairs(kernel.outputs)]


def source(kernel, kind, before):
    """A function ``run(length, ...)`` over arrays; a reduction gives one number."""
    arrays, elements = [], []
    for word, name, written in parameters(kernel):
        const, inner = "" if written else "const ", KINDS[word].format(kind=kind)
        arrays.append(f"{const}{inner}* {name}_")
        if name in raw(kernel):
            elements.append(f"{const}{inner}* {name} = {name}_;")
            continue
        place = "0" if written and isinstance(kernel, Reduction) else "at_"
        elements.append(f"{const}{inner}& {name} = {name}_[{place}];")
    loop = "for (long at_ = 0; at_ < length_; ++at_)"
    if isinstance(kernel, Reduction):
        one, both, kept, start = kernel.code
        inputs, outputs = elements[:-1], elements[-1:]
        body = (
            f"T reduced_ = {start}; {loop} {{ {' '.join(inputs)} T a = reduced_, b = {one}; "
            f"reduced_ = {both}; }} T a = reduced_; {' '.join(outputs)} {kept};"
        )
    else:
        body = f"{loop} {{ long i = at_; {' '.join(elements)} {kernel.code[0]} }}"
    return (
        f'{before}\ntypedef {kind} T;\nextern "C" {"__global__ " if "cmath" not in before else ""}'
        f"void run(long length_, {', '.join(arrays)}) {{ {body} }}\n"
    )
