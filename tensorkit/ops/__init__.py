"""The operations, a file for each kind, and what they share.

``arguments`` and ``operands`` read what a call was given, ``moving`` and ``writing`` see to devices
and to writes in place; ``planning``, ``results``, ``general`` and ``notation`` make functions and
operators of definitions. All other files hold definitions.
"""
