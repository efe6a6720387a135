"""Trainings of every scale of loss, gradient and weight, at a right rate and at wrong ones.

Summed losses, normalised and tiny weights, whole graphs at once, second-order steps, large batches
with warmup, schedules that end at zero, steps by hand: each is trained as it should be, and again
with its learning rate times or over 10, 30 and 100.
"""
