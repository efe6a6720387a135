"""Tutorials of all kinds, done right and done wrong, in the words of their authors.

As many healthy as faulty ones; the doctor watches most as ``castalia doctor script.py`` does.
Written by somebody who had not read the rules.
"""
