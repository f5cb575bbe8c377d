"""`sample`, `tiny` and `parity`, which several folders of tests use, lie beside this file.

pytest puts the folder of a `conftest.py` on the import path.
"""
