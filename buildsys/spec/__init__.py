"""What is declared: rule files and configs, text in, records out. Knows no file system and no process."""
