"""Networks of agents: what actions are worth, and which to take."""

from castalia.nets.control.acting_networks import ActorCritic, OnlineAndTarget

__all__ = ["ActorCritic", "OnlineAndTarget"]
