import subprocess
import sys

import torch

from castalia.optim import build_optimizer, without_dynamo

FIT = """
import sys, tempfile
import numpy as np
import castalia
X = np.arange(40.0).reshape(20, 2)
training = castalia.Training(run=tempfile.mkdtemp() + "/run", device="cpu")
castalia.MLPRegressor(epochs=2, training=training).fit(X, X[:, 0])
sys.exit(any(name in sys.modules for name in ("torch._dynamo", "torch.distributed.tensor")))
"""


def test_a_fit_with_checkpoints_loads_neither_the_compiler_nor_divided_tensors():
    assert subprocess.run([sys.executable, "-c", FIT]).returncode == 0


def test_no_trace_is_left_on_torchs_methods(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    method = torch.optim.Optimizer.add_param_group.__wrapped__
    before = dict(vars(method))
    with without_dynamo():
        build_optimizer("sgd", [torch.zeros(1, requires_grad=True)], lr=0.1)
    assert vars(method) == before
