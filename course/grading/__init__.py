"""Grading: from a folder that a learner handed in to points in nbgrader's gradebook.

    intake       reads what was handed in, and repairs it by the instructor's notebook
    sandbox      what a learner's process may see and do: namespaces, landlock, seccomp, limits
    warm         the program that has imported everything and forks one process per submission
    learner      runs in that process: the learner's cells, and the calls that checks ask for
    wire         messages between the two sides: JSON and raw memory, bounded
    values       what they say of values, and how these are rebuilt
    session      the checker's end of the wire: start, ask, kill, start again
    remote       an answer as the checker holds it
    judge        plays a notebook against a session and decides, with the notebook's own checks
    result       what came out, as JSON
    clean        makes a learner's text and pictures harmless for whoever opens them
    writer       the one writer of gradebook and autograded notebooks
    batch        many submissions: workers, retries, progress
    cluster      the same with workers on other machines, by way of dask.distributed
    feedback     the pages that learners get back
    class_report the report about a class, with `class_page` and `similar`
    server       what a machine has for grading

Only `warm`, `learner` and what they import run beside learners' code; definitions, expected values
and seeds stay on this side of the wire.
"""
