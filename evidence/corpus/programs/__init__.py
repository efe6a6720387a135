"""Whole little programs as people post them with a question, and healthy ones as odd as they are.

Most know nothing of the doctor: it watches them as ``castalia doctor script.py`` does. Those in
``scripts`` are files of their own. Written by somebody who had not read the rules.
"""
