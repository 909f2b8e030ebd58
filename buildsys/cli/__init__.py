"""The program `buildsys`: one small file a command."""
