"""The base of all classes that describe a table, its policy or a question.

    {"name": "age", "cells": {"start": 0, "stop": 100, "width": 10}}

A description is plain data, as above, that pydantic reads and checks. It comes from job
files, from the explorer's files and over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

Name = Annotated[str, Field(min_length=1, max_length=128)]
"""The name of a table, an attribute or a level."""


class Model(BaseModel):
    """Plain data that never changes and knows no unknown fields.

    The text below each field describes it in the schema that a server shows.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _texts_can_be_written(cls, stated: Any) -> Any:
        """Refuse texts that cannot be written as UTF-8.

        JSON can state one half of a surrogate pair, such as U+D83D. Python reads it,
        and no file or database can hold it: it would fail long after it was accepted.
        """
        try:
            for text in texts_in(stated):
                text.encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError(
                "a text holds half of a sign, a surrogate without its other half; "
                "write whole signs"
            ) from None
        return stated


def texts_in(stated: Any) -> Iterator[str]:
    """Yield every text of plain data, and the keys of its mappings.

    Parameters
    ----------
    stated : object
        A text, or lists and mappings of such data; anything else holds no text.

    Yields
    ------
    str
        The texts.
    """
    if isinstance(stated, str):
        yield stated
    elif isinstance(stated, Mapping):
        for key, value in stated.items():
            yield from texts_in(key)
            yield from texts_in(value)
    elif isinstance(stated, list | tuple):
        for value in stated:
            # Saves a call for each number: borders of districts are long lists of them.
            if not isinstance(value, int | float):
                yield from texts_in(value)
