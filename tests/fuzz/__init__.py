"""Random projects, random edits: after each build the outputs are those of a clean build, and no more ran than had to.

    world, edits       what is declared and how it is changed: values in, values out
    kit                what the scripts of such a project compute; also what the model computes
    model              what a clean build gives, and what a build may run: the reference
    chronicle          what builds did so far, and so what the next one may do
    foretold           what a plan said, held against what its build did
    stand_ins          workers in this process, and who gets them: real ones take most of the time
    memory             a manifest in this process, for the same reason
    case               one random project and its steps, played on a real disk and held against the model
    campaign           many cases in several processes, and the smallest form of one that fails

`python -m tests.fuzz --help` says how to run many, and how to play one again.
"""
