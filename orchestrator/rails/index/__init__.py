"""Search by meaning: exact cosines over normalised vectors. The only package of the orchestrator that uses numpy."""

from orchestrator.rails.index.matcher import Hit, Match, MatchIndex
from orchestrator.rails.index.scores import to_scale
from orchestrator.rails.index.vectors import VectorStore

__all__ = ["Hit", "Match", "MatchIndex", "VectorStore", "to_scale"]
