"""Settings that have grown since runs were recorded with them."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, SerializerFunctionWrapHandler, model_serializer


class Grown(BaseModel):
    """What was added later is written out only where it differs from its default.

    A run that says nothing of it keeps the identity that it had before there was any.
    """

    ADDED: ClassVar[tuple[str, ...]] = ()
    """The fields that were added."""

    @model_serializer(mode="wrap")
    def _without_what_was_added(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields = type(self).model_fields
        plain: dict[str, Any] = serialise(self)
        unused = {key for key in self.ADDED if key in fields and getattr(self, key) == fields[key].default}
        return {key: value for key, value in plain.items() if key not in unused}
