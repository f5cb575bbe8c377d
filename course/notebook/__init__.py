"""What runs in a learner's notebook: checks, hints, the record of points, transplants.

What a cell calls:

    check        `check("strides-of")`
    hints        `hint(...)` and `solution(...)`
    record       `progress()`, and what is kept of points and attempts
    transplant   `with transplant(my_function):`

A check's way, in the order of the code:

    exercise     the class of exercises; which cases give points (`drawn`), answers in a dictionary
    varied       their numbers that differ from learner to learner
    answer       finds the learner's answer among the cells that ran, which `history` keeps
    helpers      what an answer calls and what runs too late when it is graded
    trials       what the answer does in every case, beside a right answer
    runner       one case: `limited` in time, `quiet`, with the `state` of Python put back
    plain        plain data of what came back; `compare` says in words how two values differ
    rules        demands that no value shows, on the syntax tree (`answer_tree`); `demands` others
    advice       what a report says of a case, by `relations` of values, `slips` of syntax and what
                 was `raised`
    report       what is shown, and the points

A learner's notebook as grading, `course doctor` and `course update` read it:

    matching     its cells matched with the released ones: `repair`, `counting`
    answer_text  whether the text of a cell holds an answer
    own_answers  answers in cells of the learner's own
    built_notebook  a notebook that `course build` wrote

Around it:

    live         what a check tells `course watch`
    tracebacks   which end at the learner's own line
    chapter_folder  the folder of a chapter in a hosted notebook
"""
