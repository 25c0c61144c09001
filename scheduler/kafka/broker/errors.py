"""What can go wrong with the embedded broker, told so that the reader knows what to do next."""

from __future__ import annotations

from pathlib import Path

OTHER_WAYS = "or set DUELINE_BOOTSTRAP_SERVERS to a Kafka cluster you already have"


class BrokerUnavailable(Exception):
    """The embedded broker cannot run on this machine yet: a package, a jar or the network is missing."""


class BrokerStartFailed(Exception):
    """The broker process ended or did not answer in time; the message ends with the last lines of its log."""


class FolderInUse(Exception):
    """Another live broker owns the data folder; two brokers on one folder would corrupt it."""

    def __init__(self, folder: Path, owner: str) -> None:
        super().__init__(
            f"the broker folder {folder} is in use by {owner}: stop that process, or choose another folder"
        )
        self.folder = folder
