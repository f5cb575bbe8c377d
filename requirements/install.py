"""Make the environment `.venv` and install what one user of the project needs.

    python3 requirements/install.py lab      a learner: JupyterLab and nbgrader's Assignment List
    python3 requirements/install.py teach    an instructor: writing, grading, feedback
    python3 requirements/install.py dev      an engineer: the tools and tests

`make` calls this before every verb. Each user's packages include those of the users above, so one
environment serves them all. The versions stand in `requirements/*.txt`, each with its hashes.
The second call finds everything in place and installs nothing.

This file uses Python's standard library alone, and Python 3.6 and later can read it: it runs
before anything is installed, and says so where Python is too old.
"""

import argparse
import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BEFORE = ROOT / ".venv.before"
"""Where an environment of another folder is kept until its successor is complete."""
LOG = VENV / "install.log"
NOTES = VENV / "installed.json"
OLDEST = (3, 11)

USERS = {
    "lab": "what learners use",
    "teach": "what instructors use",
    "dev": "the tools and tests",
}
"""Each user with the words for what they get; each one's packages include those before."""

PACKAGES = {"lab": "jupyterlab", "teach": "nh3", "dev": "pytest"}
"""For each user a package that is there where the installation is not damaged."""


def next_step(problem):
    """What to do about a file or folder that the system refuses."""
    if problem.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "Put the course into a folder that you may write, then use the same command again."
    return "Rename or remove what is there, then use the same command again."


class Failed(Exception):
    """What went wrong and what to do next, in sentences for the person at the terminal."""


def main():
    """Install for one user; the exit status is 1 if that fails."""
    parser = argparse.ArgumentParser(description="Make the environment in .venv.")
    parser.add_argument("user", choices=USERS)
    parser.add_argument(
        "--newest", action="store_true", help="the newest releases instead of the tested ones"
    )
    options = parser.parse_args()
    try:
        with alone():
            install(options.user, newest=options.newest)
    except Failed as problem:
        sys.exit(f"install: {problem}")
    except KeyboardInterrupt:
        sys.exit("install: Stopped. The same command begins again; your work is not touched.")


def install(user, newest=False):
    """Bring `.venv` to the state that the project's files describe, for one user.

    Raises Failed if Python is too old, if the environment cannot be written, or if pip fails.
    """
    check_python()
    wanted = {} if newest else digests(user)
    before = read_notes()
    if wanted and is_installed(wanted, before):
        return
    try:
        if is_usable(before):  # without digests, so that the next call goes on if this is killed
            write_notes({"folder": str(ROOT), "is_complete": True, "digests": {}})
        else:
            make_environment(before)
        if newest:
            words = "Installing the newest releases of " + USERS[user]
            step(words, "--upgrade", "--upgrade-strategy", "eager", f".[{user}]")
        else:
            step(*locked(user))
    except Failed:  # pip changes nothing before it has everything
        put_back(before)
        raise
    step("Installing the course itself", "--no-deps", "--no-build-isolation", "-e", ".")
    write_notes({"folder": str(ROOT), "is_complete": True, "digests": wanted})
    shutil.rmtree(str(BEFORE), ignore_errors=True)


def put_back(before):
    """After a step that failed: the environment and its notes as they were."""
    if BEFORE.is_dir():
        with contextlib.suppress(OSError):
            shutil.copy(str(LOG), str(BEFORE))
        shutil.rmtree(str(VENV), ignore_errors=True)
        BEFORE.rename(VENV)
    elif before.get("is_complete"):
        write_notes(before)


@contextlib.contextmanager
def alone():
    """Wait until no other installation works in this folder: it would lose its environment."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    folder = os.open(str(ROOT), os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another installation is at work in this folder; this one waits until it is done.")
            fcntl.flock(folder, fcntl.LOCK_EX)
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(folder)


def locked(user):
    """The words and pip's arguments for one user's packages, in the versions that were tested."""
    files = [f"requirements/{name}.txt" for name in (user, "build")]
    count = sum(len(re.findall("(?m)^[a-z]", Path(ROOT, file).read_text())) for file in files)
    words = (
        "Installing {}: {} packages; this takes a minute or two and needs the network "
        "(log: .venv/install.log)"
    )
    # Python compiles a file when it is imported: most never are, which saves 100 MB
    options = ["--no-compile", "--require-hashes"]
    return [
        words.format(USERS[user], count),
        *options,
        *(word for file in files for word in ("-r", file)),
    ]


def check_python():
    """Raise Failed if this Python is too old or cannot make environments."""
    if sys.version_info < OLDEST:
        raise Failed(
            "This course needs Python 3.11 or newer; this is Python {}.{}. If you have a newer "
            "one, name it: make lab PYTHON=python3.12".format(*sys.version_info)
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        raise Failed(
            "This Python cannot make environments; on Debian and Ubuntu: apt install python3-venv"
        ) from None


def digests(user):
    """What decides whether an installation is up to date, for a user and those before."""
    shared = [ROOT / "pyproject.toml", ROOT / "requirements" / "build.txt"]
    shared += sorted(file for file in (ROOT / "course" / "jupyter").glob("*") if file.is_file())
    found = {}
    for name in USERS:
        digest = hashlib.sha256()
        for file in [*shared, ROOT / "requirements" / (name + ".txt")]:
            digest.update(file.read_bytes())
        found[name] = digest.hexdigest()
        if name == user:
            return found
    return found


def is_installed(wanted, notes):
    """Whether the environment is complete, and made of these files in this folder."""
    user = list(wanted)[-1]
    same = notes.get("digests", {}).get(user) == wanted[user]
    return same and notes.get("is_complete") and is_usable(notes, PACKAGES[user])


def is_usable(notes, package="pip"):
    """Whether there is an environment to install into.

    One that an installation left unfinished is not, for nobody knows what it holds. Nor is one
    whose folder was moved: its programs name the old place.
    """
    if notes and not (notes.get("is_complete") and notes.get("folder") == str(ROOT)):
        return False
    asked = (
        "import importlib.util, sys; "
        f"sys.exit(sys.version_info < {OLDEST} or importlib.util.find_spec('{package}') is None)"
    )
    try:
        done = subprocess.run(
            [str(python()), "-c", asked], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except OSError:
        return False
    return done.returncode == 0


def make_environment(notes):
    """An empty environment, in the place of one that cannot be used."""
    words = "Making the environment .venv with Python {}.{}".format(*sys.version_info[:2])
    was = "not complete" if notes.get("folder", str(ROOT)) == str(ROOT) else "of another folder"
    if VENV.is_symlink() and was == "of another folder" and Path(notes["folder"]).is_dir():
        raise Failed(
            f".venv is a link to the environment of {notes['folder']}, which would lose its "
            "packages. Remove the link: rm .venv"
        )
    say(words + (f", in place of one that is {was}" if VENV.is_dir() else ""))
    try:
        # it may serve its own folder still, as in a container that sees this one under another name
        if was == "of another folder" and not VENV.is_symlink() and not BEFORE.exists():
            VENV.rename(BEFORE)
        if VENV.is_dir():
            for entry in VENV.iterdir():
                is_folder = entry.is_dir() and not entry.is_symlink()
                shutil.rmtree(str(entry)) if is_folder else entry.unlink()
        VENV.mkdir(exist_ok=True)
    except OSError as problem:
        raise Failed(
            f"The environment cannot be made in {VENV}: {problem.strerror}. {next_step(problem)}"
        ) from None
    write_notes({"folder": str(ROOT), "is_complete": False})
    done = subprocess.run(
        [sys.executable, "-m", "venv", str(VENV)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise Failed(
            f"Python could not make the environment in {VENV}:\n{last_lines(done.stdout)}\n"
            "Make room on the disk, or name another Python: make lab PYTHON=python3.12"
        )


def step(words, *arguments):
    """Say what pip installs, and let it work; its own output goes to a file.

    Raises Failed with what to do next.
    """
    write_notes(read_notes())  # where that fails, pip would, too
    say(words)
    start = time.time()
    pip = [str(python()), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    pip += ["--retries", "2"]
    with LOG.open("a", encoding="utf-8") as log:
        begin = log.tell()
        environment = dict(os.environ, PIP_NO_COLOR="1", PYTHONIOENCODING="utf-8")
        done = subprocess.run(
            [*pip, *arguments],
            cwd=str(ROOT),
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    if done.returncode:
        with LOG.open(encoding="utf-8", errors="replace") as log:
            log.seek(begin)
            raise Failed(explained(log.read()))
    say(f"  done in {time.time() - start:.0f} s")


def explained(output):
    """What pip's output means for the person who waits."""
    if re.search("No space left on device|Errno 28|Disk quota exceeded", output):
        return "The disk is full. Make room (about 500 MB), then use the same command again."
    unreachable = (
        "NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|"
        "Failed to establish|name resolution|Network is unreachable|Connection (refused|reset)|"
        "SSLError|SSL: |Could not fetch URL|HTTP error 4|Could not find a version that satisfies"
    )
    if re.search(unreachable, output):
        return (
            "No package index could be reached. This step needs the network once, without a page "
            "that asks you to log in: connect, then use the same command again. Later starts need "
            "none. What pip said stands in .venv/install.log."
        )
    if "do not match the hashes" in output.lower().replace("\n", " "):
        return (
            "A package is not the one that was tested: its hash differs. Do not install it; use "
            "another network, or ask whoever gave you the course."
        )
    return (
        f"pip could not install. Its last lines:\n{last_lines(output)}\n"
        "All of its output is in .venv/install.log. Use the same command again when the cause is "
        "gone."
    )


def last_lines(text):
    """The end of a program's output, indented."""
    return "\n".join("    " + line for line in text.strip().splitlines()[-6:])


def read_notes():
    """What the last installation wrote down; nothing where there is none that can be read."""
    try:
        notes = json.loads(NOTES.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


def write_notes(notes):
    """Write down how far the installation is."""
    try:
        NOTES.write_text(json.dumps(notes, indent=1), encoding="utf-8")
    except OSError as problem:
        raise Failed(
            f"{VENV} cannot be written: {problem.strerror}. {next_step(problem)}"
        ) from None


def python():
    """The environment's interpreter."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def say(words):
    """One line for the person who waits, at once."""
    print(words, flush=True)


if __name__ == "__main__":
    main()
