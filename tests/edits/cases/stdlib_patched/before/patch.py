import textwrap
textwrap.dedent = lambda text: text
