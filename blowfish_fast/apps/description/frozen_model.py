"""What all descriptions have in common: plain data that never changes."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=128)]


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
