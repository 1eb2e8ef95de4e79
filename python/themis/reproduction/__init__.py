"""The paper's figures beside ours: what is simulated, what is read, what it must show."""

from themis.reproduction.running import Reproduction, reproduce

__all__ = ["Reproduction", "reproduce"]
