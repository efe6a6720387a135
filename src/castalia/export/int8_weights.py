"""The 8-bit variant of an ONNX file: weights of matrix products and convolutions."""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path

from castalia.utils.imports import require

__all__ = ["int8_bytes"]


def int8_bytes(content: bytes) -> bytes:
    """Return a file whose large weights have 8 bits and are scaled when it runs.

    Activations are scaled by their range in every batch, so no rows are needed to prepare it.
    """
    require("onnxruntime", caller="export", extra="export")
    quantization = require("onnxruntime.quantization", caller="export", extra="export")
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole, small = Path(folder) / "whole.onnx", Path(folder) / "small.onnx"
            whole.write_bytes(content)
            quantization.quantize_dynamic(whole, small, per_channel=True)
            return small.read_bytes()
    finally:
        logging.disable(before)
