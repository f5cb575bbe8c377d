"""One line of Python each, on which PyTorch and tensorkit must agree: value, or error and words.

In a line ``a; b`` the first part is run and the second compared.
"""

import math

import numpy as np
import pytest
from tk_oracle import assert_same_outcome, torch

import tensorkit as tk

WRITING_NUMBERS = r"""
a=torch.zeros(3);a[0]=np.bool_(True);a
a=torch.zeros(3);a[0]=np.int8(3);a
a=torch.zeros(3);a[0]=np.int64(3);a
a=torch.zeros(3);a[0]=np.uint64(3);a
a=torch.zeros(3);a[0]=np.float64(3);a
a=torch.zeros(3);a[0]=np.float32(3);a
a=torch.zeros(3,dtype=torch.int64);a[0]=np.float64(3.7);a
a=torch.zeros(3,dtype=torch.bool);a[0]=np.int64(2);a
a=torch.zeros(3);a.fill_(np.float32(2));a
a=torch.zeros(3);a.fill_(np.int64(2));a
a=torch.zeros(3);a[0]=2**63;a
a=torch.zeros(3);a[0]=-2**63-1;a
a=torch.zeros(3);a[0]=2**64;a
a=torch.zeros(3,dtype=torch.int64);a[0]=2**63;a
a=torch.zeros(3,dtype=torch.uint8);a[0]=2**64;a
a=torch.zeros(3,dtype=torch.bool);a[0]=2**64;a
a=torch.zeros(3);a.fill_(2**63);a
a=torch.zeros(3);a.fill_(2**64);a
a=torch.zeros(3);a.copy_(2**64);a
a=torch.zeros(3);a[0]=torch.tensor(1e39,dtype=torch.float64);a
a=torch.zeros(3,dtype=torch.int8);a[0]=torch.tensor(300);a
a=torch.zeros(3,dtype=torch.int8);a.fill_(torch.tensor(300));a
a=torch.zeros(3,dtype=torch.float16);a.fill_(torch.tensor(1e6));a
a=torch.zeros(3);a.fill_(torch.tensor(1e39,dtype=torch.float64));a
a=torch.zeros(1,dtype=torch.float16);a.fill_(1e6);a
a=torch.zeros(3,dtype=torch.float16);a.fill_(1e6);a
a=torch.tensor(0,dtype=torch.float16);a.fill_(1e6);a
a=torch.tensor(0.);a.fill_(1e39);a
a=torch.zeros(1);a.fill_(1e39);a
a=torch.zeros(1,dtype=torch.int8);a.fill_(300);a
a=torch.zeros(2);a.copy_(1e39);a
a=torch.zeros(2,dtype=torch.uint8);a.copy_(300);a
a=torch.zeros(2,dtype=torch.int8);a.copy_(3.7);a
a=torch.zeros(2,dtype=torch.float16);a.copy_(1e6);a
a=torch.zeros(2,dtype=torch.bool);a.copy_(1e6);a
a=torch.zeros(2,dtype=torch.int64);a.copy_(True);a
a=torch.zeros(2,dtype=torch.float16);a[0]=1e6;a
a=torch.zeros(2,dtype=torch.float16);a[:]=1e6;a
a=torch.zeros(2,dtype=torch.float16);a[0:1]=1e6;a
a=torch.zeros(2,2,dtype=torch.float16);a[0]=1e6;a
a=torch.zeros(2,2,dtype=torch.float16);a[0,0]=1e6;a
a=torch.zeros(2,2,dtype=torch.float16);a[...]=1e6;a
a=torch.zeros(2,2,dtype=torch.float16);a[None]=1e6;a
a=torch.zeros(2,2,dtype=torch.float16);a[...,0]=1e6;a
a=torch.zeros(2,dtype=torch.float16);a[0]=100000;a
a=torch.zeros(2);a[0]=1e39;a
a=torch.zeros(2);a[:]=1e39;a
a=torch.zeros(2,dtype=torch.int8);a[0]=300;a
"""
POWERS = r"""
torch.ones(2)**2**64
torch.tensor([1,2],dtype=torch.int8)**200
torch.tensor([1,2],dtype=torch.int8)**127
torch.tensor([1,2],dtype=torch.uint8)**300
torch.tensor([1,2],dtype=torch.uint8)**-300
torch.tensor([1,2],dtype=torch.int8)**torch.tensor(200)
torch.tensor([1.,2]).half()**70000
torch.tensor([1.,2]).half()**70000.
torch.tensor([1.,2])**1e39
torch.tensor([1.,2])**2**63
torch.tensor([1,2])**2**63
torch.tensor([1,2],dtype=torch.int8)**200.
torch.tensor([True,False])**True
torch.tensor([True,False])**False
torch.tensor([True,False])**2
torch.tensor([True,False])**torch.tensor(True)
torch.tensor([True,False])**torch.tensor([True,False])
True**torch.tensor([True,False])
torch.tensor([True,False])**2.5
a=torch.tensor([1,2],dtype=torch.int8);a**=200;a
200**torch.tensor([1,2],dtype=torch.int8)
300**torch.tensor([1,2],dtype=torch.int8)
1e6**torch.tensor([1.,2]).half()
1**torch.tensor([1,2],dtype=torch.int8)
torch.pow(2**63,torch.tensor([1,2]))
"""
LARGE_NUMBERS_AND_ALPHA = r"""
torch.ones(2)+2**63
torch.ones(2)+2**64
torch.ones(2)-2**64
torch.ones(2)*-2**63
torch.ones(2)*(-2**63-1)
2**64*torch.ones(2)
2**63*torch.ones(2)
2**63-torch.ones(2)
2**64/torch.ones(2)
2**64**torch.ones(2)
torch.ones(2)==2**64
torch.ones(2)<2**64
torch.ones(2,dtype=torch.int64)+2**63
torch.ones(2,dtype=torch.int64)+2**64
torch.ones(2,dtype=torch.int64)*2**63
torch.ones(2,dtype=torch.int64)==2**63
torch.ones(2,dtype=torch.int64)<2**63
torch.ones(2,dtype=torch.int64)&2**63
torch.ones(2,dtype=torch.int64)&2**64
torch.ones(2,dtype=torch.int64)//2**63
torch.ones(2,dtype=torch.int64)%2**64
torch.add(torch.ones(2),1,alpha=2**63)
torch.add(torch.ones(2),1,alpha=2**64)
torch.add(torch.ones(2),1,alpha="x")
torch.add(torch.ones(2),1,alpha=None)
torch.ones(2).add(1,alpha="x")
torch.ones(2).add_(1,alpha="x")
torch.sub(torch.ones(2),1,alpha="x")
torch.ones(2).add(1,alpha=torch.tensor(2.))
torch.ones(2).add(1,alpha=torch.tensor([2.]))
torch.ones(2).add(1,alpha=np.float32(2.))
torch.full((2,),2**63)
torch.full((2,),2**64)
torch.full((2,),2**63,dtype=torch.float32)
torch.full_like(torch.ones(2),2**64)
torch.result_type(torch.ones(2),2**64)
torch.tensor(2**63)
torch.tensor(2**64)
torch.tensor(2**63,dtype=torch.float32)
2**64 in torch.ones(2)
torch.tensor([True,False]).pow(True)
torch.tensor([True,False]).pow_(True)
torch.pow(torch.tensor([True,False]),False)
torch.pow(True,torch.tensor([True,False]))
torch.pow(300,torch.tensor([1,2],dtype=torch.int8))
"""


def _run(line, library):
    space = {"torch": library, "np": np, "inf": math.inf, "nan": math.nan}
    *before, last = line.split(";")
    exec(";".join(before), space)
    return eval(last.strip(), space)


def _lines():
    for name, text in sorted(globals().items()):
        if name.isupper() and isinstance(text, str):
            yield from (
                pytest.param(line, id=f"{name}: {line}") for line in text.split("\n") if line
            )


@pytest.mark.parametrize("line", _lines())
def test_both_libraries_agree(line):
    assert_same_outcome(lambda: _run(line, torch), lambda: _run(line, tk))
