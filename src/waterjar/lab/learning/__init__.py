"""What every laboratory learns with: networks' weights over R repeats, an objective, an optimiser and options.

`Learner` (learner.py) puts them together. Objectives, optimisers and options are one file each in their folders.
"""
