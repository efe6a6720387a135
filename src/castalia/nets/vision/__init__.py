"""Networks on images."""

from castalia.nets.vision.dilated import DilatedNet
from castalia.nets.vision.fcn import FCN
from castalia.nets.vision.segnet import SegNet
from castalia.nets.vision.unet import UNet

__all__ = ["FCN", "DilatedNet", "SegNet", "UNet"]
