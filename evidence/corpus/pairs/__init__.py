"""Programs as people post them: questions, forum threads, issues, kernels; each wrong and right.

Every program is in the corpus twice, with the mistake it was posted for and as the answers below it
put it right. Written by somebody who had not read the rules.
"""
