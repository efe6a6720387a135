"""Castalia and its peers measured side by side: ``python -m benchmarks [names…]``."""

NAMES = (
    "imports",
    "digits",
    "iris",
    "clusters",
    "overhead",
    "predict",
    "contention",
    "memory",
    "gpu_mlp",
    "odeint",
    "spectrum",
    "graph_bprop",
    "linear",
    "linear_classifiers",
    "bagging",
    "second_order",
    "doctor",
    "image_decoding",
    "resnet",
    "tokenizer",
)
