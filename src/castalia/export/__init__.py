"""Fitted models as files that other runtimes execute: ONNX, ``torch.export``, Hugging Face."""

from castalia.export.browser_page import write_page
from castalia.export.exported_model import Exported, export_model
from castalia.export.onnx_runner import OnnxModel
from castalia.export.refusals import why_not

__all__ = ["Exported", "OnnxModel", "export_model", "why_not", "write_page"]
