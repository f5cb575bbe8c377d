"""The command `course`: its verbs, and the modules that only they use.

    commands     runs a verb, and says what went wrong in a sentence
    learning     the verbs of learners
    teaching     the verbs of authors and instructors

Behind the verbs of learners:

    lab          `course lab`
    copies       a learner's copies: `course reset`, `course update`
    doctor       `course doctor`: what is wrong with a notebook
    whole_run    what its checks give when it runs from the top

Behind the others:

    demo         `course demo`, with the class of `demo_learners`
"""
