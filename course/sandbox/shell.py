"""The notebook's Python inside the sandbox: runs cells as a kernel does and notes what they show.

IPython does the work, magics included. This module has what a kernel would add: a bounded list of
outputs, and pictures by matplotlib's inline backend. Outputs are notebook outputs as plain JSON.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import time
import traceback
from dataclasses import dataclass, field
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from course.notebook import tracebacks
from course.notebook.history import message_of
from course.notebook.limited import limited

MOST_TEXT, MOST_OUTPUT, MOST_OUTPUTS = 100_000, 4 << 20, 1000
"""Characters of text, and of everything, that one cell may show; outputs of one submission."""
_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]{6,}")
_FOLDER = re.compile(r"[^\s'\"<>]{0,200}/tensorkit-grading-\w+/(?:stage/|home-\w+)")


@dataclass
class CellOutcome:
    """What running one cell came to."""

    error: str | None = None
    """Name of the exception's class."""
    message: str = ""
    errno: int | None = None
    """The system's number of an OSError."""
    bound: list[str] = field(default_factory=list)
    """Names that the cell bound to another object."""
    source: str = ""
    """The cell as Python reads it, without magics."""
    outputs: list[dict[str, Any]] = field(default_factory=list)
    stopped: bool = False
    """Whether its time was up."""


class Outputs:
    """The outputs of the cell that runs, in order; what is too much is left out."""

    def __init__(self) -> None:
        self.shown: list[dict[str, Any]] = []
        self.left_text, self.left, self.left_outputs = MOST_TEXT, MOST_OUTPUT, MOST_OUTPUTS

    def begin(self) -> None:
        """A new cell."""
        self.shown, self.left_text, self.left = [], MOST_TEXT, MOST_OUTPUT

    def text(self, name: str, text: str) -> None:
        """What is printed to a stream."""
        if self.left_text <= 0:
            return
        text = without_addresses(text[: self.left_text])
        self.left_text -= len(text)
        if self.left_text <= 0:
            text += "\n[The rest of what this cell printed is left out.]\n"
        last = self.shown[-1] if self.shown else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.add({"output_type": "stream", "name": name, "text": text})

    def add(self, output: dict[str, Any]) -> None:
        """One more output, unless it is too large or there are too many."""
        self.left -= sum(len(str(part)) for part in output.get("data", output).values())
        self.left_outputs -= 1
        if self.left > 0 and self.left_outputs > 0:
            self.shown.append(output)


class _Stream(io.TextIOBase):
    """Standard output or error of the cells."""

    encoding = "utf-8"

    def __init__(self, name: str, outputs: Outputs) -> None:
        self._name, self._outputs = name, outputs

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        self._outputs.text(self._name, str(text))
        return len(text)

    def close(self) -> None:
        """Stay open, whatever a cell does."""


def without_addresses(text: str) -> str:
    """A text without addresses and the worker's folders, which differ each time."""
    text = _FOLDER.sub("", text) if "tensorkit-grading-" in text else text
    return _ADDRESS.sub("at 0x...", text)


def _bundle(data: Any) -> dict[str, str]:
    """The texts of a display by their type; pictures come as base64 already."""
    return {
        str(kind): without_addresses(text)
        for kind, text in dict(data).items()
        if isinstance(text, str)
    }


class _Hook(DisplayHook):
    """Notes the value of a cell's last expression."""

    shell: Any

    def write_output_prompt(self) -> None: ...

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        result = {"output_type": "execute_result", "execution_count": self.prompt_count}
        self.shell.outputs.add({**result, "data": _bundle(format_dict), "metadata": {}})

    def finish_displayhook(self) -> None: ...


class _Publisher(DisplayPublisher):
    """Notes what `display` shows."""

    shell: Any

    def publish(self, data: Any, *_: Any, **__: Any) -> None:
        self.shell.outputs.add(
            {"output_type": "display_data", "data": _bundle(data), "metadata": {}}
        )

    def clear_output(self, wait: bool = False) -> None:
        self.shell.outputs.shown.clear()


class Shell(InteractiveShell):
    """IPython with its outputs noted."""

    displayhook_class, display_pub_class = _Hook, _Publisher

    def __init__(self, **options: Any) -> None:
        self.outputs = Outputs()
        super().__init__(**options)

    def enable_gui(self, gui: Any = None) -> None:
        """No windows here."""

    def ask_exit(self) -> None:
        raise SystemExit

    def transform_cell(self, raw_cell: str) -> str:
        """The cell as Python; only a cell that is not Python yet is searched for magics."""
        try:
            if not raw_cell[:1].isspace():
                ast.parse(raw_cell)
                return raw_cell if raw_cell.endswith("\n") else raw_cell + "\n"
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            pass
        return str(super().transform_cell(raw_cell))

    def init_sys_modules(self) -> None:
        super().init_sys_modules()
        sys.modules["__main__"] = self.user_module

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        self.outputs.add(
            {
                "output_type": "error",
                "ename": str(getattr(etype, "__name__", etype)),
                "evalue": without_addresses(message_of(evalue)),
                "traceback": [without_addresses(str(line)) for line in stb][:40],
            }
        )

    def run(self, source: str, seconds: float) -> CellOutcome:
        """One cell; ends after so many seconds, if the cell lets itself be ended."""
        before = dict(self.user_ns)
        ran = CellOutcome()
        self.outputs.begin()
        result: list[Any] = []
        error: BaseException | None = None
        streams = sys.stdout, sys.stderr
        begun = time.monotonic()
        sys.stdout, sys.stderr = (_Stream(name, self.outputs) for name in ("stdout", "stderr"))
        try:
            limited(lambda: result.append(self.run_cell(source, store_history=True)), seconds)
        except BaseException as problem:
            error = problem
        finally:
            sys.stdout, sys.stderr = streams
        if result:
            error = result[0].error_before_exec or result[0].error_in_exec or error
        if error is not None:
            ran.error, ran.message = type(error).__name__, without_addresses(message_of(error))
            ran.errno = getattr(error, "errno", None)
        # by the clock: IPython may have caught the exception
        ran.stopped = time.monotonic() - begun >= seconds
        ran.source = str(getattr(result[0].info, "transformed_cell", source)) if result else source
        # `before` stands for no value: a new name counts as bound, also if it is bound to None
        names = (n for n, value in dict(self.user_ns).items() if before.get(n, before) is not value)
        ran.bound = sorted(name for name in names if type(name) is str and len(name) < 200)[:1000]
        ran.outputs = self.outputs.shown
        return ran


def place_of(error: BaseException) -> str:
    """The innermost line of a cell that raised: `line 3: return a + b`."""
    if isinstance(error, RecursionError):
        return ""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.line and frame.filename.startswith("<ipython-input"):
            return f"line {frame.lineno}: {frame.line}"[:500]
    return ""


def make() -> Shell:
    """The shell, with matplotlib's pictures in the notebook; made once, before any fork."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.xmode = "Plain"
    config.InteractiveShell.cache_size = 100
    config.InteractiveShell.enable_tip = False
    config.PlainTextFormatter.max_seq_length = 1000
    shell = Shell.instance(config=config)
    shell.run_line_magic("matplotlib", "inline")
    tracebacks.shorten()
    return shell
