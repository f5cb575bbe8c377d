"""The operations, a file for each kind, and what they share.

``arguments`` reads what a call was given, ``copying`` sees to dtypes and devices, ``inplace`` to
writes in place; ``methods`` gives tensors their methods. All others hold
definitions.
"""
