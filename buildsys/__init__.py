"""buildsys: a file-watching incremental build system for LLM data and training pipelines."""

__version__ = "0.1.0"
