"""HTTP as pure bytes: heads, chunk frames, header rules, targets and splices."""
