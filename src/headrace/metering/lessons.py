"""What completed entries taught about models, as the control process last told it. One worker's; exchanges read it."""

from collections.abc import Mapping

from headrace.model.estimate import Learned


class Lessons:
    """By the model's public name."""

    __slots__ = ("_models",)

    def __init__(self) -> None:
        self._models: dict[str, Learned] = {}

    def of(self, model: str) -> Learned | None:
        """What was learned of a model; None where nothing was."""
        return self._models.get(model)

    def take(self, models: Mapping[str, Learned]) -> None:
        """Newer lessons; of other models what was known holds."""
        self._models.update(models)
