"""Real packages under mutation: whatever changes a result changes the fingerprint, and little else does.

    packages, entries  the packages as first-party code, with functions that go deep into them
    mutants            edits of a text
    truth              what an entry gives, and which functions ran, found out without buildsys
    prints             what `buildsys.code` makes of a tree and its edits
    measure            a package's entries under many edits
    report             the figures

`python -m tests.mutation --help` says how to measure.
"""
