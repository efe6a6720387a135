"""Systems over graphs: their nodes, their links, and graphs as a whole."""

from castalia.catalog.records import System

__all__ = ["GRAPHS"]

KIPF = (
    "2017, Kipf, Welling, Semi-supervised classification with graph convolutional networks, arXiv "
    "1609.02907"
)
GIN = "2019, Xu, Hu, Leskovec, Jegelka, How powerful are graph neural networks?, arXiv 1810.00826"

GRAPHS = (
    System(
        name="NodeClassifier",
        path="castalia.models.graphs:NodeClassifier",
        family="graphs",
        tasks=("node classification",),
        data="graph",
        summary="Graph network that classifies nodes, trained on those whose class is known",
        reference=KIPF,
        small={"hidden": 8, "epochs": 60},
        toy="communities",
        pass_mark=0.9,
        sizes={"Kipf and Welling": {"hidden": 16, "depth": 2}},
        rows=("GNN-04",),
    ),
    System(
        name="NodeRegressor",
        path="castalia.models.graphs:NodeRegressor",
        family="graphs",
        tasks=("node regression",),
        data="graph",
        summary="Graph network that predicts a number for nodes",
        reference=KIPF,
        small={"network": "sage", "hidden": 16, "epochs": 100, "dropout": 0.0, "l2": 0.0},
        toy="heights",
        pass_mark=0.8,
    ),
    System(
        name="GraphClassifier",
        path="castalia.models.graphs:GraphClassifier",
        family="graphs",
        tasks=("graph classification",),
        data="graph",
        summary="Graph network that classifies whole graphs, such as molecules",
        reference=GIN,
        small={"hidden": 8, "depth": 2, "epochs": 20},
        toy="rings",
        pass_mark=0.95,
        rows=("GNN-05",),
    ),
    System(
        name="GraphRegressor",
        path="castalia.models.graphs:GraphRegressor",
        family="graphs",
        tasks=("graph regression",),
        data="graph",
        summary="Graph network that predicts a number for whole graphs",
        reference=GIN,
        small={"hidden": 8, "depth": 2, "epochs": 40, "dropout": 0.0},
        toy="ring_sizes",
        pass_mark=0.8,
    ),
    System(
        name="LinkPredictor",
        path="castalia.models.graphs:LinkPredictor",
        family="graphs",
        tasks=("link prediction",),
        data="graph",
        summary="Graph network that scores pairs of nodes by how likely they are linked",
        reference="2016, Kipf, Welling, Variational graph auto-encoders, arXiv 1611.07308",
        small={"hidden": 16, "epochs": 40},
        toy="blocks",
        pass_mark=0.9,
        rows=("GNN-06",),
    ),
)
