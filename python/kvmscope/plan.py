"""What would happen if: plans, by the models of `kvmscope plan`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from kvmscope._kvmscope import Report, plan_chain

__all__ = ["chain"]

Path = str | os.PathLike[str]


def chain(
    plan: Path | None = None,
    *,
    vnfs: int | Sequence[int] | None = None,
    size: int | Sequence[int] | None = None,
    imix: str | None = None,
    pattern: Literal["chain", "north-south"] | None = None,
    nic: str | None = None,
    snapshot: Path | None = None,
    link: str | None = None,
    ports: int | None = None,
    cards: int | None = None,
    pcie: str | None = None,
    mps: int | None = None,
    mrrs: int | None = None,
    iommu_small_pages: bool | None = None,
    remote_node: bool | None = None,
    hop: str | None = None,
    calibrate: Path | Sequence[Path] | None = None,
    pmd_cores: int | None = None,
    ghz: float | None = None,
    ingress: str | None = None,
    vnf_pps: str | None = None,
    vnf: str | None = None,
    vnf_cores: int | None = None,
    vhost_pps: str | None = None,
    channel: str | None = None,
    channel_window: str | None = None,
    channel_batch: int | None = None,
    datapath: str | Sequence[str] | None = None,
    search: bool = False,
    must_migrate: bool | None = None,
    target: str | None = None,
    flows: int | str | None = None,
    megaflows: int | str | None = None,
    queues: int | None = None,
    directions: int | None = None,
    vxlan: bool | None = None,
    conntrack: bool | None = None,
    loss_free: bool | None = None,
    core_watts: float | None = None,
    core_price: float | None = None,
) -> Report:
    """What SR-IOV, OVS-DPDK and other datapaths carry, which resource binds, and how many cores they take.

    Either `plan`, a TOML file or its text (docs/read/plan.md), or quantities, which are called and written as the options of
    `kvmscope plan chain`. `search` and `calibrate` go with both; `channel_window` and `channel_batch` with `calibrate`.

    >>> import kvmscope.plan
    >>> report = kvmscope.plan.chain(vnfs=8, size=64, nic="XL710", hop="240+0.24", pmd_cores=4)
    >>> list(report.sections)
    ['datapath']
    """
    quantities = {
        "vnfs": vnfs,
        "size": size,
        "imix": imix,
        "pattern": pattern,
        "nic": nic,
        "link": link,
        "ports": ports,
        "cards": cards,
        "pcie": pcie,
        "mps": mps,
        "mrrs": mrrs,
        "iommu_small_pages": iommu_small_pages,
        "remote_node": remote_node,
        "hop": hop,
        "pmd_cores": pmd_cores,
        "ghz": ghz,
        "ingress": ingress,
        "vnf_pps": vnf_pps,
        "vnf": vnf,
        "vnf_cores": vnf_cores,
        "vhost_pps": vhost_pps,
        "channel": channel,
        "datapath": datapath,
        "must_migrate": must_migrate,
        "target": target,
        "flows": flows,
        "megaflows": megaflows,
        "queues": queues,
        "directions": directions,
        "vxlan": vxlan,
        "conntrack": conntrack,
        "loss_free": loss_free,
        "core_watts": core_watts,
        "core_price": core_price,
    }
    options = [(key, text) for key, value in quantities.items() for text in _texts(value)]
    if plan is not None and (options or snapshot is not None):
        beside = ", ".join(dict(options)) or "snapshot"
        raise TypeError(f"chain() takes a plan or quantities, not both; {beside} would not act beside a plan")
    recordings = [calibrate] if isinstance(calibrate, str | os.PathLike) else list(calibrate or [])
    if not recordings and (channel_window is not None or channel_batch is not None):
        raise TypeError("channel_window and channel_batch are about rings of a recording: calibrate=..")
    return plan_chain(plan, options, snapshot, recordings, channel_window, channel_batch, search)


def _texts(value: object) -> list[str]:
    """A quantity as the program reads it: none, one, or several of a list."""
    if value is None:
        return []
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, str | int | float):
        return [str(value)]
    if isinstance(value, Sequence):
        return [text for item in value for text in _texts(item)]
    raise TypeError(f"a quantity of a plan is a number, a text or a list of these, not {value!r}")
