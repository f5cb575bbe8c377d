"""What runs beside a learner's code while it is graded, and what limits that code.

    profiles     what a learner's process may see and do, by `namespaces`, `landlock`, `seccomp`
    warm         the program that has imported everything and forks one process per submission
    learner      runs in that process: the learner's cells, and the calls that checks ask for
    shell        the notebook's Python there
    wire         messages between this process and the checker: JSON and raw memory, bounded
    values       how values are written in messages, and rebuilt
    sandboxed    what a learner imports there as `course`

The checker's side of it is in `grading`; definitions and expected values stay there.
"""
