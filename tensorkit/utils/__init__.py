"""What training needs beside the library: ``utils.data``."""

from tensorkit.utils import data as data
