"""Grading: from a folder that a learner handed in to points in nbgrader's gradebook.

A submission's way, in the order of the code:

    batch        many submissions: which are new, retries, progress
    intake       takes the bytes of a notebook out of a folder
    pool         the worker processes of this machine; `worker` is their program
    cluster      workers on other machines, by way of dask.distributed
    judge        grades one submission; decides at each check
    cells        runs its cells in sandboxed processes
    session      the checker's side of a sandbox: start, ask, kill, start again
    environment  what exists in it
    remote       an answer as the checker holds it; `asserts` are an instructor's plain checks
    result       what came out, as JSON
    clean        makes a learner's text and pictures harmless for whoever opens them
    writer       the one writer of results, autograded notebooks and `gradebook`
    template     templates of HTML, for `writer` and `class_page`

Around it:

    agreement    whether definitions, notebooks and gradebook have the same points
    nbgrader_way the same grading where nbgrader is asked: commands and buttons
    formgrader   what Formgrader shows of a refusal
    feedback     the pages that learners get back
    class_report the report about a class, with `class_page`, `class_files` and `similar`
    comments     one comment for all answers that are wrong in the same way
    export       grades for Canvas, Moodle and Gradescope
    server       what a machine has for grading

Learners' code runs in the folder `sandbox`; definitions, expected values and seeds stay here.
"""
