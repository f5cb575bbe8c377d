"""`size`, which tests of several folders use, lies beside this file: pytest puts its folder on the
import path."""
