"""Networks on images."""

from castalia.nets.vision.alexnet import AlexNet
from castalia.nets.vision.anchor_yolo import AnchorYOLO
from castalia.nets.vision.captioner import Captioner
from castalia.nets.vision.convnet import ConvNet, ConvNet1d
from castalia.nets.vision.convnext import ConvNeXt
from castalia.nets.vision.dilated import DilatedNet
from castalia.nets.vision.fast_convnet import FastConvNet
from castalia.nets.vision.fcn import FCN
from castalia.nets.vision.googlenet import GoogLeNet
from castalia.nets.vision.inner_maps import Taps, scale_layers
from castalia.nets.vision.lenet import LeNet
from castalia.nets.vision.resnet import ResNet
from castalia.nets.vision.segnet import SegNet
from castalia.nets.vision.sliding_classifier import feature_stride, fully_convolutional
from castalia.nets.vision.unet import UNet
from castalia.nets.vision.vgg import VGG
from castalia.nets.vision.vit import ViT
from castalia.nets.vision.yolo import YOLO, YOLO_LAYERS, slim_layers

__all__ = [
    "FCN",
    "VGG",
    "ViT",
    "YOLO",
    "YOLO_LAYERS",
    "AlexNet",
    "AnchorYOLO",
    "Captioner",
    "ConvNet",
    "ConvNeXt",
    "ConvNet1d",
    "DilatedNet",
    "FastConvNet",
    "GoogLeNet",
    "LeNet",
    "ResNet",
    "SegNet",
    "Taps",
    "UNet",
    "feature_stride",
    "fully_convolutional",
    "scale_layers",
    "slim_layers",
]
