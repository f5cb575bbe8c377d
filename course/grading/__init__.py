"""Grading: from a folder that a learner handed in to points in nbgrader's gradebook.

    intake       takes what was handed in out of its folder
    session      the checker's side of the sandbox: start, ask, kill, start again
    remote       an answer as the checker holds it
    judge        plays a notebook against a session and decides, with the notebook's own checks
    result       what came out, as JSON
    clean        makes a learner's text and pictures harmless for whoever opens them
    worker       the program of one worker process
    workers      the worker processes of this machine
    cluster      workers on other machines, by way of dask.distributed
    writer       the one writer of gradebook and autograded notebooks
    batch        many submissions: what is graded, retries, progress
    feedback     the pages that learners get back
    class_report the report about a class, with `class_page`, `class_files` and `similar`
    server       what a machine has for grading

Learners' code runs in the folder `sandbox`; definitions, expected values and seeds stay here.
"""
