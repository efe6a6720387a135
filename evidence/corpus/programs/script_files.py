"""The programs that are files of their own, as ``castalia doctor script.py`` meets them."""

from functools import partial

from evidence.corpus.cases import case
from evidence.corpus.programs._loops import script

FILES = {
    # name of the file: planted code, dose, data, net, further right answers
    "stuck_at_0693": ("CST102", "severe", "tabular", "mlp", ("CST111",)),
    "softmax_on_one_unit": ("CST301", "severe", "tabular", "mlp", ()),
    "lstm_share_price": ("CST202", "severe", "time series", "lstm", ()),
    "predicts_only_one_class": ("CST209", "severe", "images", "cnn", ()),
    "house_prices_nan": ("CST201", "severe", "tabular", "linear", ("CST101", "CST105")),
    "new_head_old_optimizer": ("CST110", "severe", "images", "cnn", ()),
    "never_zeroed_accumulation": ("CST112", "severe", "tabular", "mlp", ()),
    "kaggle_squeeze": ("CST304", "severe", "tabular", "mlp", ()),
    "fraud": ("CST204", "severe", "tabular", "mlp", ("CST403", "CST406")),
    "small_flowers_overfit": ("CST401", "severe", "images", "mlp", ("CST207",)),
    "one_image_at_a_time_in_train_mode": ("CST116", "severe", "images", "cnn", ("CST115",)),
    "char_rnn_with_carried_state": (None, "none", "text", "gru", ()),
    "residual_network": (None, "none", "images", "cnn", ()),
    "movie_reviews_gru": (None, "none", "text", "gru", ()),
}

for name, (code, dose, data, net, accept) in FILES.items():
    run = partial(script, name)
    run.__name__, run.__module__ = name, __name__
    case(code, dose=dose, data=data, net=net, accept=accept)(run)
