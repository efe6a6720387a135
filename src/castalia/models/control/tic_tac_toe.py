"""Tic-tac-toe as positions after a move: what a player that learns from its own games needs.

A position is a tuple of nine cells seen by whoever has just moved: 1 own, -1 the other's, 0 empty.
"""

from __future__ import annotations

from functools import cache

from castalia.base.saved_values import register

__all__ = ["TicTacToe", "best_value"]

Position = tuple[int, ...]
LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


class TicTacToe:
    """The rules.

    Examples
    --------
    >>> game = TicTacToe()
    >>> len(game.moves(game.start))
    9
    """

    start: Position = (0,) * 9

    def moves(self, position: Position) -> list[Position]:
        """Return the positions that the other player can move to, seen by that player."""
        turned = [-cell for cell in position]
        return [(*turned[:i], 1, *turned[i + 1 :]) for i, cell in enumerate(position) if cell == 0]

    def result(self, position: Position) -> float | None:
        """Return 1 if the last move won, 0 for a draw, None while the game goes on."""
        if any(position[a] == position[b] == position[c] == 1 for a, b, c in LINES):
            return 1.0
        return 0.0 if 0 not in position else None


register(TicTacToe, state=lambda game: {}, restore=lambda state: TicTacToe())


@cache
def best_value(position: Position) -> float:
    """Return what a position is worth to whoever has just moved, both playing best: minimax."""
    game = TicTacToe()
    found = game.result(position)
    if found is not None:
        return found
    return -max(best_value(reply) for reply in game.moves(position))
