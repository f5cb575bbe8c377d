"""A learner's name in the notebook is the one under which nbgrader hands in."""

from __future__ import annotations

import os
import pwd

import pytest
from nbgrader.utils import get_username

from course.shared import identity


def test_it_is_nbgraders_name() -> None:
    assert identity.learner() == get_username()


def test_in_a_container_of_a_hub_it_is_the_hubs_name(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = pwd.struct_passwd(("jovyan", "x", 1000, 100, "", "/home/jovyan", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry)
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    assert identity.learner() == get_username() == "ada"


def test_a_user_without_an_entry_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1234567)
    assert identity.learner() == "1234567"
