"""Networks that see: x (B, C, H, W), channels before height and width."""

from castalia.nets.vision.alexnet import AlexNet
from castalia.nets.vision.convnet import ConvNet, ConvNet1d
from castalia.nets.vision.googlenet import GoogLeNet
from castalia.nets.vision.lenet import LeNet
from castalia.nets.vision.resnet import ResNet
from castalia.nets.vision.vgg import VGG

__all__ = ["VGG", "AlexNet", "ConvNet", "ConvNet1d", "GoogLeNet", "LeNet", "ResNet"]
