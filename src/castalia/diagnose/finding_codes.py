"""The doctor's vocabulary: a stable code and name for every finding. Never reuse or rename one."""

__all__ = ["NAMES", "PAGE", "SEVERITIES"]

SEVERITIES = ("error", "warning", "info")  # the worst first
PAGE = "docs/findings/{code}.md"

NAMES = {
    # 1xx: optimisation
    "CST101": "learning-rate-too-high",
    "CST102": "learning-rate-too-low",
    "CST103": "vanishing-gradient",
    "CST104": "exploding-gradient",
    "CST105": "non-finite",
    "CST106": "dead-units",
    "CST107": "saturated-units",
    "CST108": "symmetric-initialisation",
    "CST109": "poor-initialisation",
    "CST110": "not-training",
    "CST111": "stopped-too-early",
    "CST112": "gradients-accumulate",
    "CST113": "noisy-gradient",
    "CST114": "ill-conditioned",
    "CST115": "batch-statistics",
    "CST116": "mode-mismatch",
    # 2xx: data
    "CST201": "inputs-not-scaled",
    "CST202": "targets-not-scaled",
    "CST203": "degenerate-column",
    "CST204": "class-imbalance",
    "CST205": "label-noise",
    "CST206": "leakage",
    "CST207": "too-little-data",
    "CST208": "distribution-shift",
    "CST209": "not-shuffled",
    # 3xx: objective and architecture
    "CST301": "wrong-output-activation",
    "CST302": "wrong-loss",
    "CST303": "missing-nonlinearity",
    "CST304": "output-shape-broadcast",
    "CST305": "softmax-over-wrong-axis",
    "CST306": "wrong-output-size",
    # 4xx: generalisation
    "CST401": "overfitting",
    "CST402": "underfitting",
    "CST403": "no-better-than-baseline",
    "CST404": "over-regularised",
    "CST405": "miscalibrated",
    "CST406": "ignores-input",
    # 5xx: generative models and sequences
    "CST501": "mode-collapse",
    "CST502": "discriminator-wins",
    "CST503": "posterior-collapse",
    "CST504": "padding-learned",
    "CST505": "future-leak",
}
