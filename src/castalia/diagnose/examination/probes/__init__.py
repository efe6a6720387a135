"""The probes of the active examination, one file each: a function from a subject to an outcome."""
