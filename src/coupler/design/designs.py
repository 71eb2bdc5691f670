"""The result of a sweep: the parameters of many designs, and what was measured of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coupler.model import ModelError
from coupler.model.outputs import check_target, written_whole
from coupler.model.wording import clipped, counted, listed


@dataclass(frozen=True, eq=False)
class Designs:
    """Designs of a robot, one per row.

    Attributes:
        parameters: by name, (n, ...) each, the parameters of the designs.
        results: by name, (n, ...) each, the measurements of the designs.
    """

    parameters: Mapping[str, np.ndarray]
    results: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def __getitem__(self, name: str) -> np.ndarray:
        """The result, or the parameter, of that name, (n, ...)."""
        values = self.results.get(name, self.parameters.get(name))
        if values is None:
            raise ModelError(f"nothing was measured as {name!r}; there are {listed([*self.results, *self.parameters])}")
        return values

    def best(self, name: str, *, largest: bool = False) -> int:
        """The number of the design with the smallest, or largest, value of a result; NaN counts as worse than any.

        Raises:
            ModelError: for a result that is not one number for each design, or that has none for any of them.
        """
        values = self[name]
        if values.ndim != 1:
            raise ModelError(f"{name!r} is {values.shape[1:]} numbers for each design; the best one has no meaning")
        if np.isnan(values).all():
            raise ModelError(f"{name!r} is not a number for any design")
        return int(np.nanargmax(values) if largest else np.nanargmin(values))

    def design(self, number: int) -> dict[str, np.ndarray]:
        """The parameters of one design, as `Robot.with_parameters` takes them."""
        if not isinstance(number, int | np.integer) or not -len(self) <= number < len(self):
            raise ModelError(f"there is no design {clipped(number)}; there are 0 to {len(self) - 1}")
        return {name: values[number] for name, values in self.parameters.items()}

    def to_csv(self, path: str | Path) -> Path:
        """Writes a row for each design: its number, its parameters, and its results; the file is whole or not there."""
        path, columns = check_target(path), {"design": np.arange(len(self))}
        for name, values in {**self.parameters, **self.results}.items():
            flat = values.reshape(len(self), -1)
            many = flat.shape[1] > 1 or values.ndim > 1
            columns |= {f"{name}[{i}]" if many else name: flat[:, i] for i in range(flat.shape[1])}
        rows = [",".join(_quoted(name) for name in columns)]
        rows += [",".join(f"{x:.17g}" for x in row) for row in zip(*columns.values(), strict=True)]
        with written_whole(path) as file:
            file.write(("\n".join(rows) + "\n").encode())
        return path

    def __str__(self) -> str:
        lines = [f"{counted(len(self), 'design')} by {listed(self.parameters)}"]
        for name, values in self.results.items():
            if values.ndim == 1 and not np.isnan(values).all():
                least, most = np.nanmin(values), np.nanmax(values)
                without = int(np.isnan(values).sum())
                missing = f"; none for {counted(without, 'design')}" if without else ""
                lines.append(f"  {name}: {least:.6g} (design {self.best(name)}) to {most:.6g}{missing}")
            else:
                lines.append(f"  {name}: {' × '.join(map(str, values.shape))}")
        return "\n".join(lines)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if any(sign in name for sign in ',"\n') else name
