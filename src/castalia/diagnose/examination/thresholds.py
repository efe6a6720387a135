"""Every threshold of the active examination, and how it was set.

"Quiet" below is the largest value seen over the healthy trainings of
``tests/diagnose/examination``, and "planted" the smallest over the faults planted there; each
threshold lies between the two. Differences of error rates and losses must also exceed their
sampling error by `SURE` standard errors, so that small data keeps quiet by itself.
"""

# ---- how much is looked at ----
MOST_ROWS = 2000  # rows of train and of validation that are looked at
MOST_NUMBERS = 20_000_000  # numbers in those rows: 80 MB of float32
MOST_COLUMNS = 200  # columns for scikit-learn's models; more are summed up by principal components
TREES = 200  # trees that boosting may grow, over all classes

# ---- sampling error ----
SURE = 3.0  # standard errors; chance passes them about once in a thousand looks
VERY_SURE = 5.0  # for the question whether a module has learned anything: it steers all trials

# ---- tiny fit ----
TINY_ROWS = 16  # few enough for any network with more than a handful of weights
TINY_STEPS = 400  # healthy networks needed at most 150
TINY_RATES = (1e-2, 1e-3)  # for Adam; recurrent and normalised networks want the smaller one
TINY_ACCURACY = 0.95  # all but none of 16; quiet 1.0, planted 0.6
TINY_R2 = 0.95  # quiet 0.99, planted 0.7
TINY_FALL = 0.3  # of the first loss, for tasks without predictions; a text repeats its prefixes
TINY_STUCK = 0.02  # a generative loss has a floor, so only one that does not fall is a failure

# ---- learning rate ----
RATE_STEPS = 150  # steps of one trial; below RATE_LEAST the trial says nothing
RATE_LEAST = 25
RATE_TOO_HIGH = 8.0  # times the best rate; quiet 3 (rates are tried by factors of about 3)
RATE_TOO_LOW = 0.04  # times the best rate; plain descent at 0.01 has 0.03 of it and works, hence:
HIGH_PROGRESS = 0.5  # fall of the loss, as a share of that at the best rate; quiet 0.8, planted 0.3
LOW_PROGRESS = 0.1  # quiet 0.14 (plain descent at 0.01), planted 0.05 (Adam at 1e-5)

# ---- the input ----
BLIND = 1e-4  # spread of the outputs over rows, as a share of their size: rounding is 1e-7
INPUT_MATTERS = 0.01  # relative rise of the loss on mixed-up inputs

# ---- baselines ----
BETTER = 0.75  # error of a baseline over that of the network; a tie or a near miss is no fault
BETTER_BY = 0.03  # and the difference in error rate, or in the share of variance not explained
UNDERFIT = 1.5  # training error over the validation error of the best baseline; quiet 1.1
UNDERFIT_BY = 0.05

# ---- more data ----
STILL_FALLING = 0.15  # relative fall of the validation error from half of the rows to all
FALLING_BY = 0.02  # the same, absolute
DATA_GAP = 0.12  # validation error less training error; digits with 1,400 rows 0.03, with 80 0.25

# ---- data ----
SHIFT_AUC = 0.65  # random splits stay below 0.56 with 300 rows
SHIFT_SURE = 0.55  # what AUC less SURE standard errors must exceed
SHARED_ROWS = 0.01  # of the validation rows; random splits of continuous data share none
SHARED_LEAST = 3
NATURAL_BITS = 12.0  # bits by which rows must be rarer than n^2 coincidences need
NEAR = 0.05  # of the median distance between neighbours among the training rows
NEAR_ROWS = 0.05  # of the validation rows that near
TELLS_ALL = 0.995  # balanced accuracy or r^2 of one column alone
OTHERS_TELL = 0.95  # when the others do this well, one good column is no surprise
COLUMN_GAP = 0.03  # gap between the classes along a copy of the label, as a share of its range
SCALE_HIGH = 30.0  # root mean square; raw digits (0 to 16) 7, raw pixels (0 to 255) 80
SCALE_LOW = 1e-3
SCALE_RATIO = 100.0  # between columns, when the largest exceeds SCALE_WIDE; quiet 30 (one-hot)
SCALE_WIDE = 10.0
TARGET_HIGH = 30.0  # root mean square; scores of 0 to 10 stay below it
TARGET_LOW = 1e-3
RARE = 0.05  # share of a class that is worth a word
IGNORED = 0.1  # recall of a rare class that counts as ignored

# ---- label noise ----
NOISE_RATIO = 0.55  # error of the confident half over that of all; clean 0.38, 5 % noise 0.63
NOISE_MARGIN = 0.1  # the same over the share of the guessing error that is left; clean 0.09
NOISE_RATE = 0.03  # error rate of the confident half; clean digits 0.002
NOISE_SIGNAL = 0.65  # error of the model over that of guessing: without signal, no verdict

# ---- generalisation ----
GAP = 0.1  # validation error less training error; digits 0.03
GAP_RATIO = 2.0  # validation loss over training loss
CALIBRATION = 0.1  # expected calibration error; quiet 0.05
DROPOUT_STRONG = 0.5  # rates from which lowering dropout is tried
DECAY_STRONG = 5e-3  # likewise for weight decay that is part of the gradient
REGULAR_BETTER = 0.7  # error without the penalty over error with it

# ---- batch statistics ----
NORM_LOSS = 1.5  # loss with running statistics over loss with those of the batch; quiet 2.1, but
NORM_ERROR = 0.05  # then the error hardly rises: quiet 0.01, planted 0.4
NORM_BATCH = 4  # rows in a batch: variances of 4 values are off by half

# ---- causality ----
FUTURE = 1e-4  # change of an output when the future changes, over its size; rounding is 1e-6
SHIFTED = 0.95  # of the targets that equal the next input
