"""Trainings as people post them, by an author who saw neither the rules nor older cases."""
