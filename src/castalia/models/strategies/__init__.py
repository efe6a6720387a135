"""Learning paradigms around any estimator: other objectives, other data, other orders."""

from castalia.models.strategies.active_learner import ActiveLearning
from castalia.models.strategies.adversarial_defence import AdversarialTraining
from castalia.models.strategies.compression import Compress
from castalia.models.strategies.curriculum import Curriculum
from castalia.models.strategies.distillation import Distill
from castalia.models.strategies.drift_detector import AdaptiveWindow, DriftDetector
from castalia.models.strategies.federated_average import FederatedAveraging
from castalia.models.strategies.multi_task import MultiTask
from castalia.models.strategies.noisy_labels import WeakSupervision
from castalia.models.strategies.online_learner import OnlineLearning
from castalia.models.strategies.pretrained_start import FeatureExtract, FineTune, Pretrain
from castalia.models.strategies.rank_learner import Ranking
from castalia.models.strategies.self_labels import SelfTraining
from castalia.models.strategies.self_supervised import SelfSupervised
from castalia.models.strategies.semi_supervised import SemiSupervised
from castalia.models.strategies.task_sequence import ContinualLearning

__all__ = [
    "ActiveLearning",
    "AdaptiveWindow",
    "AdversarialTraining",
    "Compress",
    "ContinualLearning",
    "Curriculum",
    "Distill",
    "DriftDetector",
    "FeatureExtract",
    "FederatedAveraging",
    "FineTune",
    "MultiTask",
    "OnlineLearning",
    "Pretrain",
    "Ranking",
    "SelfSupervised",
    "SelfTraining",
    "SemiSupervised",
    "WeakSupervision",
]
