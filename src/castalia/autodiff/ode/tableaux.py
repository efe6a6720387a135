"""The methods as data: Runge–Kutta tableaux and Adams weights.

A Runge–Kutta step from (t, y) by h computes k_i = f(t + c_i h, y + h sum_j a_ij k_j) and ends at
y + h sum_i b_i k_i. The last row of ``a`` is b, so that the end is one more combination; in a
method that is "first same as last" the end is also where the last stage was evaluated.

References
----------
1980, Dormand and Prince, A family of embedded Runge–Kutta formulae, J. Comp. Appl. Math. 6.
1986, Shampine, Some practical Runge–Kutta formulas, Math. Comp. 46 (the interpolant).
1993, Hairer, Nørsett, Wanner, Solving Ordinary Differential Equations I, II.1 and III.1.
"""

from dataclasses import dataclass

__all__ = ["ADAMS_BASHFORTH", "ADAMS_MOULTON", "HERMITE", "TABLEAUX", "Tableau"]

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Tableau:
    """One Runge–Kutta method.

    Attributes
    ----------
    order
        Order of the solution.
    c
        Where the stages lie in the step.
    a
        Row i combines the stages before i; the last row is b.
    error
        Weights of the error estimate, b minus those of the embedded method; empty for a method
        of fixed steps.
    dense
        Row i holds the coefficients of theta, theta^2 … by which k_i enters the interpolant.
    """

    order: int
    c: tuple[float, ...]
    a: Rows
    error: tuple[float, ...] = ()
    dense: Rows = ()

    @property
    def first_same_as_last(self) -> bool:
        """Whether the last stage is f at the end of the step."""
        return len(self.a) == len(self.c) - 1


EULER = Tableau(1, c=(0.0,), a=((1.0,),))

MIDPOINT = Tableau(2, c=(0.0, 1 / 2), a=((1 / 2,), (0.0, 1.0)))

RK4 = Tableau(
    4,
    c=(0.0, 1 / 2, 1 / 2, 1.0),
    a=((1 / 2,), (0.0, 1 / 2), (0.0, 0.0, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
)

DOPRI5 = Tableau(
    5,
    c=(0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
    a=(
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    error=(
        35 / 384 - 5179 / 57600,
        0.0,
        500 / 1113 - 7571 / 16695,
        125 / 192 - 393 / 640,
        -2187 / 6784 + 92097 / 339200,
        11 / 84 - 187 / 2100,
        -1 / 40,
    ),
    dense=(
        (
            1.0,
            -8048581381 / 2820520608,
            8663915743 / 2820520608,
            -12715105075 / 11282082432,
        ),
        (0.0, 0.0, 0.0, 0.0),
        (
            0.0,
            131558114200 / 32700410799,
            -68118460800 / 10900136933,
            87487479700 / 32700410799,
        ),
        (0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072),
        (
            0.0,
            127303824393 / 49829197408,
            -318862633887 / 49829197408,
            701980252875 / 199316789632,
        ),
        (0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844),
        (0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423),
    ),
)

TABLEAUX = {"euler": EULER, "midpoint": MIDPOINT, "rk4": RK4, "dopri5": DOPRI5}

# Cubic through both ends, for methods without an interpolant of their own; its "stages" are f at
# the start, f at the end, and the slope (y_1 - y_0) / h of the chord.
HERMITE: Rows = ((1.0, -2.0, 1.0), (0.0, -1.0, 1.0), (0.0, 3.0, -2.0))

# Weights of f at the newest point first: y + h sum_j b_j f_{n-j}.
ADAMS_BASHFORTH: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (3 / 2, -1 / 2),
    3: (23 / 12, -16 / 12, 5 / 12),
    4: (55 / 24, -59 / 24, 37 / 24, -9 / 24),
}
# The first weight is that of f at the new point, which the predictor guesses.
ADAMS_MOULTON: dict[int, tuple[float, ...]] = {
    1: (1.0,),
    2: (1 / 2, 1 / 2),
    3: (5 / 12, 8 / 12, -1 / 12),
    4: (9 / 24, 19 / 24, -5 / 24, 1 / 24),
}
