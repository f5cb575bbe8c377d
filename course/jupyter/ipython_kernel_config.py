"""The kernels' configuration, installed into <environment>/etc/ipython.

Every kernel on this machine's own loopback address warns that it is not encrypted. The warning
does not apply here, and the cure it offers (ipc) makes `nbgrader autograde` hang.
"""

import logging

logging.getLogger("IPKernelApp").addFilter(
    lambda record: "TCP without encryption" not in record.getMessage()
)
