"""Errors as the client library makes them: its own classes, with its flags."""

from __future__ import annotations

from typing import Final

from dueline.scheduler.kafka.vocabulary import KafkaError, KafkaException

NO_ERROR: Final = 0
DEFAULT: Final = KafkaError(KafkaError.NO_ERROR)


def kafka_error(
    code: int, text: str = "", *, fatal: bool = False, retriable: bool = False, requires_abort: bool = False
) -> KafkaError:
    """One error; without a text the library's own for that code."""
    return KafkaError(code, text or told(code), fatal, retriable, requires_abort)


def failure(code: int, text: str = "", **flags: bool) -> KafkaException:
    """The same as the exception that calls raise."""
    return KafkaException(kafka_error(code, text, **flags))


def told(code: int) -> str:
    """The library's text of a code."""
    return KafkaError(code).str()


def name(code: int) -> str:
    """Its name: `ILLEGAL_GENERATION`, `_TIMED_OUT`."""
    return KafkaError(code).name()


def fencing_as_one(code: int) -> int:
    """librdkafka tells its user one code for all ways to be fenced."""
    if code in (KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED):
        return KafkaError._FENCED
    if code == KafkaError._TIMED_OUT_QUEUE:
        return KafkaError._TIMED_OUT
    return code
