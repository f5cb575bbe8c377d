"""Products of matrices and einsum: each line does the same in PyTorch and tensorkit."""

import numpy as np
import pytest
from lines import assert_line_agrees

import tensorkit as tk

LINES = r"""
torch.outer(m[0],m[1])
m[0].outer(m[1])
torch.outer(m,m[0])
torch.outer(m[0],m)
torch.outer(m[0],T([1,2]))
torch.addmm(m[:,:3],m,m.t())
torch.addmm(m[0,:3],m,m.t())
torch.addmm(m,m,m)
torch.addmm(m[0],m,m.t())
torch.addmm(m[0,:3],m[0],m.t())
torch.addmm(m[:,:3].long(),m,m.t())
m[0,:3].addmm(m,m.t())
torch.addmm(m[0,:3].long(),m.long(),m.t().long())
A=T([[2.,1],[1,3]]).requires_grad_();torch.linalg.solve(A,m[0,:2])
A=T([[2.,1],[1,3]]);torch.linalg.solve(A,m[0,:2])
A=T([[2.,1],[1,3]]);torch.linalg.solve(A,m[:2])
A=T([[2.,1],[1,3]]);torch.linalg.solve(A,m[:2,:2])
A=T([[2.,1],[1,3]]);torch.linalg.solve(A.expand(3,2,2),m[:,:2,None])
A=T([[2.,1],[1,3]]);torch.linalg.solve(A,m)
A=T([[1.,1],[1,1]]);torch.linalg.solve(A,m[0,:2])
A=T([[1.,1],[1,1]]);torch.linalg.inv(A)
A=T([[1.,1],[1,1]]).expand(2,2,2);torch.linalg.inv(A)
A=T([[2.,1],[1,3]]);torch.linalg.inv(A)
A=(m[:2,:2]*1+1)*1;torch.linalg.inv(A)
A=m[:2,:2]+T([[3.,0],[0,4]]);torch.linalg.inv(A)
A=m[:2,:2]+T([[3.,0],[0,4]]);torch.linalg.solve(A,m[0,:2])
A=m[:2,:2]+T([[3.,0],[0,4]]);torch.linalg.solve(A,m[:2])
torch.linalg.inv(m)
torch.linalg.inv(m[0])
torch.linalg.inv(m[:3,:3].long())
torch.linalg.solve(m,m)
torch.linalg.solve(T([[2.,1],[1,3]]),m[0,:2].long())
torch.linalg.solve(T([[2.,1],[1,3]]),m[0,:2].double())
torch.ones(2,3)@torch.ones(3).double()
torch.ones(4,2,3).long()@torch.ones(3)
torch.ones(3).half()@torch.ones(3,2)
torch.ones(3)@torch.ones(3).double()
torch.ones(4,2,3)@torch.ones(4,3,2).double()
torch.linalg.solve(T([[2.,1],[1,3]]),1)
torch.linalg.inv(torch.zeros(0,0))
m.long()@m.t().long()
m.half()@m.t().half()
(m.long()*10**17)@m.t().long()
m.byte()@m.t().byte()
m.int()@m.t().int()
m.long()@m[0].long()
m[0].long()@m[0].long()
m[0].half()@m[0].half()
x.long()@x.mT.long()
m@m
m@T(1.)
m@1
m@m.t().long()
torch.mm(m,m)
torch.mm(m,x)
torch.mm(x,m)
torch.mv(m,m)
torch.bmm(x,x)
torch.bmm(m,m)
torch.matmul(x,m[0])
x@m.t()
m.t()@m
m[0]@m.t()
m.t()@x[0]
m@x.mT
m[0]@x.mT
torch.matmul(m,2)
m.__matmul__(m.t())
torch.zeros(0,3)@torch.zeros(3,2)
torch.zeros(2,0)@torch.zeros(0,3)
torch.zeros(2,0)@torch.zeros(0)
torch.zeros(0)@torch.zeros(0)
torch.zeros(3,0,4)@torch.zeros(4,2)
"""


SUMS = r"""
torch.einsum("ij,jk->ik",m,m.t())
torch.einsum("ij,jk",m,m.t())
torch.einsum("ij,jk->ki",m,m.t())
torch.einsum("ij,kj->ki",m,m[:2])
torch.einsum("bij,bkj->bki",x,x[:,:2])
torch.einsum("bij,bkj->kib",x,x[:,:2])
torch.einsum("ijk,lk->lij",x,m)
torch.einsum("ijk,lk->ilj",x,m)
torch.einsum("ijk,lk->jil",x,m)
torch.einsum("ij->ji",m)
torch.einsum("ij->",m)
torch.einsum("ij->i",m)
torch.einsum("ii",m[:,:3])
torch.einsum("ii->i",m[:,:3])
torch.einsum("iij->j",torch.ones(2,2,3))
torch.einsum("bij,bjk->bik",x,x.mT)
torch.einsum("bij,bkj->bik",x,x)
torch.einsum("i,j->ij",m[0],m[1])
torch.einsum("i,i",m[0],m[1])
torch.einsum("i,i->i",m[0],m[1])
torch.einsum("bhqd,bhkd->bhqk",x[:,None],x[:,None])
torch.einsum("ijk,jl->ikl",x,m)
torch.einsum("ijk,jk->i",x,m)
torch.einsum("ij,jk,kl->il",m,m.t(),m)
torch.einsum("ij,ij->ij",m,m)
torch.einsum("ij,j->ij",m,m[0])
torch.einsum("ij , jk -> ik",m,m.t())
torch.einsum("iJ,Jk",m,m.t())
torch.einsum("ij,kl->ijkl",m,m)
torch.einsum("ij,jk->ik",[m,m.t()])
torch.einsum("i,",m[0],T(2.))
torch.einsum("ij,jk->il",m,m.t())
torch.einsum("ij,jk->ii",m,m.t())
torch.einsum("ij,kj->ik",m,x)
torch.einsum("ij,jk",m,m)
torch.einsum("ij",m,m)
torch.einsum("ij,jk",m)
torch.einsum("ijk",m)
torch.einsum("i",m)
torch.einsum("ij,jk->ik",m,m.t().long())
torch.einsum("ii->i",m)
torch.einsum("bij,jk->bik",x,m.t())
torch.einsum("ij->ij",m)
torch.einsum("ij,i->j",m,m[:,0])
torch.einsum("bi,bj->bij",m,m)
torch.einsum("bi,ij,bj->b",m,torch.ones(4,4),m)
"""


@pytest.mark.parametrize("line", LINES.strip().split("\n"))
def test_a_line_does_the_same_in_both_libraries(line):
    # NumPy lays the results of LAPACK out row by row; see known_differences for the others
    but = ("strides",) if "linalg" in line else ()
    but = ("nodes", "is a view") if line in ("m@x.mT", "m[0]@x.mT") else but
    assert_line_agrees(line, but)


@pytest.mark.parametrize("line", SUMS.strip().split("\n"))
def test_einsum_gives_pytorchs_values_and_gradients(line):
    assert_line_agrees(line, but=("nodes", "strides", "is a view"))


@pytest.mark.parametrize(
    ("left", "right", "repair"),
    [
        ((2, 3, 4), (5,), "x @ y    # with a y of shape (4,)"),
        ((4,), (5,), "x @ y    # with a y of shape (4,)"),
        ((2, 3, 4), (2, 5, 4), "x @ y.mT"),
        ((2, 3, 4), (2, 5, 6), "x @ y    # with a y of shape (2, 4, 6)"),
    ],
)
def test_sizes_that_do_not_fit_are_said_in_numbers(left, right, repair):
    with pytest.raises(RuntimeError) as caught:
        tk.ones(left) @ tk.ones(right)
    _, _, *more = str(caught.value).split("\n")
    assert more == [
        "Rows of the first have 4 numbers, columns of the second 5.",
        f"Try: {repair}",
    ]


@pytest.mark.parametrize("equation", ["...ij->...ji", "i1,jk->ik", "ij->i->j", ""])
def test_an_equation_of_other_signs_than_letters_is_refused(equation):
    with pytest.raises(NotImplementedError, match="does not name each dimension with a letter"):
        tk.einsum(equation, tk.ones(2, 3), tk.ones(3, 2))


@pytest.mark.parametrize(
    "equation", ["dc,dc->", "dab,dba->b", "bad,ad->bd", "ca,bda->cdb", "a,b->ba", "ab,b->ab"]
)
def test_a_planned_einsum_gives_what_the_first_call_gave(equation):
    sizes = {"a": 1 if "d" in equation else 5, "b": 16, "c": 33, "d": 17}
    names = equation.partition("->")[0].split(",")
    numbers = np.random.default_rng(0)
    x, y = (tk.from_numpy(numbers.standard_normal([sizes[n] for n in each])) for each in names)
    first, again = (tk.einsum(equation, x, y) for _ in range(2))
    assert first.equal(again)
    assert again.stride() == first.stride()
    assert again.reshape(-1).tolist() == again.numpy().ravel().tolist()
