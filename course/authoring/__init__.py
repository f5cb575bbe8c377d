"""From an author's text to released notebooks, and to what learners get.

A chapter's way, in the order of the code:

    new          `course new`: the files of a chapter, the places of an exercise
    text         reads an author's text into the cells of a notebook
    build        `course build`: executes it, then releases it
    release      the released notebook, by nbgrader's converter
    bundle       `course bundle`: what learners get
    hosted       `course hosted`: what Colab opens

What is looked at before:

    audit        what an exercise lacks
    mutants      wrong answers that its check must fail
    form         points, order, headings, width of code of a chapter
    introduced   no name of the library before the section that introduces it
"""
