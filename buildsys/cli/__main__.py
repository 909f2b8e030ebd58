"""`python -m buildsys.cli`: the program, where its script is not on the path."""

from buildsys.cli.main import main

main()
