"""The operations, a file for each kind, and what they share.

``arguments`` and ``promotion`` read what a call was given, ``transfer`` sees to devices,
``writing`` to writes in place; ``methods`` gives tensors their methods. All others hold
definitions.
"""
