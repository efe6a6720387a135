"""What a model uses: which columns matter, how, and why a row got its prediction."""

from castalia.evaluate.explanations.attributions import Attributions
from castalia.evaluate.explanations.grad_cam import GradCAM
from castalia.evaluate.explanations.integrated_gradients import integrated_gradients
from castalia.evaluate.explanations.partial_dependence import PartialDependence
from castalia.evaluate.explanations.permutation_importance import PermutationImportance
from castalia.evaluate.explanations.shapley import shapley_values

__all__ = [
    "Attributions",
    "GradCAM",
    "PartialDependence",
    "PermutationImportance",
    "integrated_gradients",
    "shapley_values",
]
