"""Small networks with known answers, and sums over every state of them."""

import itertools

import numpy as np

from castalia.models.probabilistic import BayesianNetwork, GaussianNode, TableNode


def random_network(seed=0, n=6, zeros=False):
    """Return a network of random tables over two or three states each."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 4, n)
    nodes = []
    for i in range(n):
        count = int(random.integers(0, min(i, 3) + 1))
        above = sorted(random.choice(i, count, replace=False).tolist()) if i else []
        table = random.dirichlet(np.ones(sizes[i]), size=[sizes[j] for j in above])
        if zeros and i == n - 1:
            table[..., 0], table[..., 1] = 0.0, table[..., 1] + table[..., 0]
        states = tuple("pqr"[: sizes[i]])
        nodes.append(TableNode(f"v{i}", states, table, tuple(f"v{j}" for j in above)))
    return BayesianNetwork.build(nodes)


def joint_of(net):
    """Return the joint table, state by state, axes in the order of ``nodes_``."""
    nodes = list(net.nodes_.values())
    names = [node.name for node in nodes]
    whole = np.ones([len(node.states) for node in nodes])
    for state in itertools.product(*(range(k) for k in whole.shape)):
        at = dict(zip(names, state, strict=True))
        for node in nodes:
            whole[state] *= node.table[tuple(at[p] for p in (*node.parents, node.name))]
    return names, whole


def mixed_network():
    """Return two coins, and three numbers that depend on them and on each other."""
    return BayesianNetwork.build(
        [
            TableNode("a", ("no", "yes"), [0.3, 0.7]),
            TableNode("b", ("x", "y", "z"), [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], ("a",)),
            GaussianNode("u", [1.0, -1.0], np.zeros((2, 0)), [0.5, 1.0], given=("a",)),
            GaussianNode(
                "v", [0.0, 1.0, 2.0], [[0.5], [1.0], [-1.0]], [1.0, 0.3, 0.2], ("u",), ("b",)
            ),
            GaussianNode("w", 0.5, [1.0, -0.5], 0.7, ("u", "v")),
        ]
    )


def alarm_network():
    """Return the burglar alarm: two causes of one effect, and two who call."""
    yes = ("yes", "no")
    return BayesianNetwork.build(
        [
            TableNode("burglary", yes, [0.001, 0.999]),
            TableNode("earthquake", yes, [0.002, 0.998]),
            TableNode(
                "alarm",
                yes,
                [[[0.95, 0.05], [0.94, 0.06]], [[0.29, 0.71], [0.001, 0.999]]],
                ("burglary", "earthquake"),
            ),
            TableNode("john", yes, [[0.9, 0.1], [0.05, 0.95]], ("alarm",)),
            TableNode("mary", yes, [[0.7, 0.3], [0.01, 0.99]], ("alarm",)),
        ]
    )
