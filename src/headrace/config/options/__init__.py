"""Every option of the file, once: its name, type, default and line of documentation.

Reading, `headrace check --explain`, docs/reference/settings.md and the report of a reload all work from these classes.
Defaults are those of the model values, so the file and the worker cannot disagree.
"""
