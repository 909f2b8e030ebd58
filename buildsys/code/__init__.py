"""What the code of an action can do: source texts in, fingerprint and explanation out. Knows no file system."""
