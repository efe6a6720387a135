"""The trainings that the doctor is judged on once; its thresholds were not set on them."""
