from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Cluster",
    "PolicyOffer",
    "Workload",
    "__version__",
    "build_info",
    "clear_auction",
    "give_back",
    "number_slots",
    "open_auction",
    "simulate",
    "watch_auctions",
]

__version__: str

@final
class Cluster:
    def __new__(
        cls,
        rack: npt.NDArray[np.uint32],
        gpus: npt.NDArray[np.uint32],
        slot_gpus: npt.NDArray[np.uint32],
        gpu_type: npt.NDArray[np.uint32],
        capacity: Mapping[str, npt.NDArray[Any]] | None = None,
        host: npt.NDArray[np.int64] | None = None,
    ) -> Cluster: ...
    @property
    def gpus(self) -> int: ...
    @property
    def slots(self) -> int: ...
    def slot_columns(self) -> dict[str, npt.NDArray[np.uint32]]: ...

@final
class PolicyOffer:
    def free(self) -> npt.NDArray[np.uint32]: ...
    def host(self) -> npt.NDArray[np.float64]: ...
    def total(self) -> int: ...
    def spare(self, app: int) -> int: ...
    def holdings(
        self, app: int, job: int
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]: ...
    def rho(self) -> npt.NDArray[np.float64]: ...
    def best_rho(self) -> npt.NDArray[np.float64]: ...
    def claim(self, app: int, job: int, most: int) -> list[tuple[int, int]] | None: ...
    def claim_app(self, app: int) -> list[tuple[int, list[tuple[int, int]]]]: ...

@final
class Workload:
    def __new__(
        cls,
        apps: Mapping[str, npt.NDArray[Any]],
        jobs: Mapping[str, npt.NDArray[Any]],
        slowdowns: npt.NDArray[np.float64],
        scaling: Sequence[Sequence[tuple[int, float]]],
        speeds: npt.NDArray[np.float64],
        mixes: npt.NDArray[np.bool_],
        tenants: Mapping[str, Sequence[Any]] | None = None,
    ) -> Workload: ...
    @property
    def apps(self) -> int: ...
    @property
    def jobs(self) -> int: ...

class _BuildInfo(TypedDict):
    version: str
    debug: bool
    policies: list[str]

def build_info() -> _BuildInfo: ...
def give_back() -> None: ...
def simulate(
    cluster: Cluster,
    workload: Workload,
    policy: object,
    settings: Mapping[str, object],
    progress: Callable[[int, int, int], None] | None = None,
    agents: Sequence[tuple[int, object]] = ...,
) -> dict[str, Any]: ...
def clear_auction(
    slots: Mapping[str, npt.NDArray[np.uint32]],
    bids: Mapping[str, object],
    rules: Mapping[str, object],
    given: Mapping[str, object] | None = None,
) -> dict[str, Any]: ...
def open_auction(
    slots: Mapping[str, npt.NDArray[np.uint32]],
    bids: Mapping[str, object],
    rules: Mapping[str, object],
) -> list[dict[str, Any]]: ...
def number_slots(named: Sequence[tuple[int | str, int | str, int | str]]) -> dict[str, Any]: ...
def watch_auctions(
    cluster: Cluster,
    workload: Workload,
    settings: Mapping[str, object],
    app: int,
    at_us: int | None,
) -> dict[str, Any]: ...
