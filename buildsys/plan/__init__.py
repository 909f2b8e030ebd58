"""What must run and why: keys and decisions over what `spec` and `code` give. Knows no file system and no database."""
