"""Whatever is handed in has a result."""

from __future__ import annotations

import json

import pytest
from classroom import CHAPTER, Class

# What is handed in

HANDED_IN = {
    "nothing": b"",
    "not JSON": b"PK\x03\x04 certainly not",
    "a list": b"[]",
    "no cells": b'{"nbformat": 4}',
    "cells that are none": b'{"nbformat": 4, "cells": [1, null, "x"]}',
    "deep": b"[" * 1_000_000,
    "NaN": b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": NaN}]}',
    "half a surrogate": rb'{"nbformat": 4, "cells": [{"cell_type": "code", "source": "\ud800"}]}',
    "strange types": json.dumps(
        {
            "nbformat": 4,
            "cells": [
                {"cell_type": ["code"], "source": {}},
                {"cell_type": "code", "id": {"x": 1}, "metadata": [], "source": ["a", 1]},
                {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": ["x"]}}, "source": "1"},
                {"cell_type": "code", "metadata": {"nbgrader": 7}, "id": "../../x", "source": "1"},
            ],
        }
    ).encode(),
    "thousands of cells": json.dumps(
        {"nbformat": 4, "cells": [{"cell_type": "code", "source": "1"}] * 5000}
    ).encode(),
}


@pytest.mark.parametrize("name", HANDED_IN)
def test_whatever_is_handed_in_has_a_result(klass_once: Class, name: str) -> None:
    # stock: an exception; a duplicated id stops the whole batch
    result = klass_once.grade(HANDED_IN[name])
    assert result.chapter == CHAPTER
    assert result.score == 0
    assert result.possible == 20
