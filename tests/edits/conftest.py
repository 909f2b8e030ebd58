"""The trees of the cases hold files that look like tests."""

collect_ignore = ["cases"]
