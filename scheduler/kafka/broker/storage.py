"""A new data folder: what Kafka's `kafka-storage format` writes, without starting Java for it each time.

Formatting makes two files. meta.properties is three ids as text. bootstrap.checkpoint holds the feature levels of
this Kafka version and nothing of the cluster, so the one that the real tool once wrote serves for every folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .config import ALONE, Place, Ports, meta_properties, random_id, server_properties
from .errors import BrokerStartFailed
from .folder import BrokerFolder
from .process import NOT_FOR_JAVA
from .runtime import STORAGE_TOOL, Runtime

FORMAT_S = 60.0
CHECKPOINT = "bootstrap.checkpoint"


def ensure_formatted(runtime: Runtime, folder: BrokerFolder, *, cluster_id: str = "", place: Place = ALONE) -> None:
    """Format the data folder unless it is; meta.properties comes last, so a half-made folder is made again.

    Nodes of one cluster are given the same `cluster_id`; without one it is a new cluster.
    """
    if folder.meta.exists():
        return
    template = runtime.derived / CHECKPOINT
    if not template.exists():
        format_with_tool(runtime, folder, cluster_id=cluster_id, place=place)
        return
    folder.data.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(template, folder.data / CHECKPOINT)
    unfinished = folder.meta.with_suffix(".new")
    meta = meta_properties(cluster_id=cluster_id or random_id(), directory_id=random_id(), node=place.node)
    unfinished.write_text(meta, encoding="utf-8")
    unfinished.rename(folder.meta)


def format_with_tool(runtime: Runtime, folder: BrokerFolder, *, cluster_id: str = "", place: Place = ALONE) -> Path:
    """Format with Kafka's own tool; returns the checkpoint it wrote."""
    settings = server_properties(data=folder.data, ports=Ports(client=1, controller=2), overrides={}, place=place)
    folder.config.write_text(settings, encoding="utf-8")  # the tool wants a whole configuration; ports do not matter
    arguments = ("format", "-t", cluster_id or random_id(), "-c", str(folder.config))
    done = subprocess.run(
        runtime.command(STORAGE_TOOL, *arguments, log=folder.log),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=FORMAT_S, check=False,
        env={key: value for key, value in os.environ.items() if key not in NOT_FOR_JAVA},
    )
    if done.returncode != 0:
        raise BrokerStartFailed(f"cannot format {folder.data}:\n{done.stdout}{done.stderr}")
    return folder.data / CHECKPOINT
