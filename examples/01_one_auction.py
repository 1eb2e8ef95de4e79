"""One auction: three apps want the 12 free GPUs of three machines."""

# ruff: noqa: INP001, T201 - a script to read and run, which prints

from __future__ import annotations

import themis

# What is free: rack, machine, slot, GPUs.
offer = [("r0", "m0", 0, 4), ("r0", "m1", 0, 4), ("r1", "m2", 0, 4)]

# What the apps say of themselves. An app that ran alone with its fair share would take t_id_s.
apps = [
    # Has waited for an hour; it runs at half its speed across racks.
    themis.AppState(
        "waiting",
        3600,
        20_000,
        gang_size=4,
        max_gpus=8,
        t_id_s=6000,
        profile=(1, 1, 0.9, 0.5),
    ),
    # Just came; takes any GPU.
    themis.AppState("elastic", 60, 8000, gang_size=1, max_gpus=8, t_id_s=4000),
    # Needs more GPUs at once than are free.
    themis.AppState("large", 600, 90_000, gang_size=16, max_gpus=16, t_id_s=9000),
]

outcome = themis.clear_auction(offer, apps, payment="lease")

print("Who got what:")
for row in outcome.allocation.iter_rows(named=True):
    print(f"  {row['app_id']:8} {row['gpus']} GPUs of {row['machine']}  ({row['cause']})")

print("Hidden payments (the share of the lease that a winner keeps):")
for row in outcome.payments.iter_rows(named=True):
    print(f"  {row['app_id']:8} c = {row['c']:.3f}")

print("Why:")
for row in outcome.reasons.iter_rows(named=True):
    print(f"  {row['app_id']:8} {row['explanation']}")

print(f"No allocation of this offer is more than {outcome.gap:.1%} better.")
