"""The site's programs lie beside their pages, outside of the packages."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "site"))
