# SPDX-License-Identifier: MIT OR Apache-2.0
"""What to give to `compression=` in h5py, h5netcdf and xarray: `Lossy` and `Lossless`.

Both are constants: two of the same meaning are equal, and they can be keys, pickled and pasted from their repr.
"""
from __future__ import annotations

import math
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn, Optional, SupportsFloat, Union, cast

from . import keep as keeping, library, modes

FILTER_ID: int = library.lib.h5z_gpu_filter_id()

if TYPE_CHECKING:
    import h5py

    _Base = Mapping[str, Any]
else:
    try:
        # create_dataset takes no other objects as `compression`. It is a mapping too.
        import h5py

        _Base = h5py.filters.FilterRefBase
    except ImportError:
        _Base = Mapping

# JSON has no other way to say these.
_NAMED = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class _Filter(_Base):
    filter_id = FILTER_ID

    def __init__(self, text: str, config: dict[str, Any]) -> None:
        self._words = library.words(text)
        self._config = config

    @property
    def filter_options(self) -> tuple[int, ...]:
        """The words to give to HDF5, which are none, one number, three or four."""
        return self._words

    @property
    def words(self) -> tuple[int, ...]:
        """As `filter_options`, for who hands on the fill value by another way."""
        return self._words

    @property
    def codec(self) -> str:
        """Name of the codec; "auto" leaves the choice to the writer."""
        return cast(str, self._config["codec"])

    @property
    def mode(self) -> modes.Mode:
        """The mode of the bound."""
        given = (mode for keyword, mode in modes.bounds().items() if keyword in self._config)
        return next(given, modes.named("lossless"))

    @property
    def bound(self) -> float:
        """The number of the bound; 0 without one."""
        return cast(float, self._config.get(self.mode.keyword, 0.0))

    @property
    def keep(self) -> tuple[str, ...]:
        """Names of what comes back beside the bound: "sign", "zero", "range", in this order."""
        return keeping.names(self._config.get("keep"))

    @classmethod
    def from_filter_options(cls, values: Iterable[int]) -> Lossy | Lossless:
        """What the words of the filter mean.

        Parameters
        ----------
        values : sequence of int
            The words: none, one number such as 11003, three, four, or the 12 to 20 that lie in a file. There a list
            that is not lossless also holds the fill value, where the program that wrote it has declared one.

        Returns
        -------
        Lossy or Lossless
            As the words say, whichever of the two was asked.

        Raises
        ------
        ValueError
            For words without a meaning.
        TypeError
            For what is no sequence of whole numbers.

        Examples
        --------
        >>> Lossy.from_filter_options([111003])
        Lossy(absolute=0.001, codec='szx')
        """
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise TypeError(f"h5z-gpu: filter options {values!r}; give a sequence of whole numbers, such as (11003,)")
        words = list(values)
        for word in words:
            if isinstance(word, bool) or not hasattr(word, "__index__"):
                raise TypeError(
                    f"h5z-gpu: {word!r} among filter options; words are whole numbers, such as 11003 for 0.001"
                )
            if not 0 <= int(word) < 2**32:
                raise ValueError(f"h5z-gpu: {word!r} among filter options; each is from 0 to 4294967295, such as 11003")
        from .stored_words import meaning  # an import of the package need not wait for it

        said = meaning(words)
        if said.bound is None:
            return Lossless(said.codec)
        bound: dict[str, Any] = {modes.named(said.mode).keyword: said.bound}
        fill = said.stored.fill_value if said.stored else None
        return Lossy(codec=said.codec, fill_value=fill, keep=said.keep, **bound)

    def get_config(self) -> dict[str, Any]:
        """The keywords that make the same filter again, `Lossy(**config)`, in a dict that JSON can hold."""
        return dict(self._config)

    def __repr__(self) -> str:
        shown = {k: v for k, v in self._config.items() if (k, v) != ("codec", "auto")}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in shown.items())})"

    def _kwargs(self) -> dict[str, Any]:
        """What `**` gives to create_dataset."""
        return {"compression": self.filter_id, "compression_opts": self.words}

    def __getitem__(self, keyword: str) -> Any:
        return self._kwargs()[keyword]

    def __iter__(self) -> Iterator[str]:
        return iter(self._kwargs())

    def __len__(self) -> int:
        return len(self._kwargs())

    def _key(self) -> tuple[Any, ...]:
        return (self.filter_id, self._words)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, _Filter) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())


class Lossy(_Filter):
    """Changes no value by more than a bound; NaN, infinities and the fill value come back bit for bit.

    Exactly one bound is given. `Lossy(1e-3)` and `Lossy(1e-3, "rel")` are short for `Lossy(absolute=1e-3)` and
    `Lossy(relative=1e-3)`.

    Parameters
    ----------
    bound : float, optional
        The bound of `mode`.
    mode : {"abs", "rel", "pw_rel", "psnr"}, optional
        What `bound` is: absolute (default), relative, point-wise relative or a PSNR.
    absolute : float, optional
        Largest difference, in the units of the data. Above 0.
    relative : float, optional
        Largest difference, as a part of the range (max − min) of each chunk. Above 0 and below 1.
    pointwise_relative : float, optional
        Largest difference, as a part of each value; zeros stay zero. Above 0 and below 1.
    psnr : float, optional
        Least peak signal-to-noise ratio of each chunk, in decibels. Above 0.
    codec : {"auto", "fast", "small", "szx", "lorenzo", "planes", "dense"}
        "auto" takes for each chunk planes, lorenzo, szx, or no loss where that is as small, as a sample says. "fast" is
        planes, under a pointwise relative bound szx. "small" encodes each chunk by all codecs, with and without loss,
        and takes the shortest frame: on CPUs alone, some ten times slower. "dense" is a tenth shorter than "lorenzo",
        on CPUs alone, at a third of its speed.
        With "planes" and an absolute bound a value that was stored once never moves again, however often its chunk is
        rewritten.
    keep : {"sign", "zero", "range"}, optional
        What comes back beside an absolute or relative bound or a PSNR; several with + between them, "sign+range", or as
        a sequence. "sign": positive values stay positive, negative ones negative, zeros zero. "zero": 0 and -0 come
        back bit for bit. "range": no value leaves the range of its chunk, whose ends and zeros come back bit for bit.
    fill_value : float, optional
        What stands for missing values: it comes back bit for bit and stretches no range. HDF5 itself must know it,
        which is what `**Lossy(fill_value=...)` does. It holds for floating-point data.
    of : {"chunk", "dataset"}
        Whose range `relative` and `psnr` follow. The filter sees chunks alone: for "dataset" the range is found first,
        by `h5z_gpu.save`, or from an array by `for_array`, and becomes an absolute bound.

    Raises
    ------
    ValueError
        For no bound or several, for one that its mode does not allow, and for `keep` beside one that takes none. By
        `compression=Lossy(fill_value=...)`, which would lose the fill value: h5py takes nothing but the words from
        there. By `compression=Lossy(of="dataset")`.
    TypeError
        For what is no number, and for unknown keywords.

    Notes
    -----
    Of chunks, `relative` and `psnr` follow the range that each has when it is written: each has a limit of its own, and
    values appended to a chunk change it. For one limit that stays, ask `of="dataset"`.

    Examples
    --------
    >>> f.create_dataset("v", data=a, chunks=(16, 64, 64), compression=Lossy(absolute=1e-3))
    >>> f.create_dataset("w", data=a, chunks=(16, 64, 64), **Lossy(absolute=1e-3, fill_value=-999))
    """

    def __init__(
        self,
        bound: SupportsFloat | None = None,
        mode: str | None = None,
        *,
        absolute: SupportsFloat | None = None,
        relative: SupportsFloat | None = None,
        pointwise_relative: SupportsFloat | None = None,
        psnr: SupportsFloat | None = None,
        codec: str = "auto",
        keep: keeping.Keep = None,
        fill_value: SupportsFloat | str | None = None,
        of: str = "chunk",
        **unknown: NoReturn,
    ) -> None:
        if unknown:
            raise TypeError(f"h5z-gpu: Lossy has no {', '.join(unknown)}; it has {', '.join(modes.bounds())}, codec, "
                            "keep, fill_value, of")
        named = {"absolute": absolute, "relative": relative, "pointwise_relative": pointwise_relative, "psnr": psnr}
        given = {k: v for k, v in named.items() if v is not None}
        if mode is not None and bound is None:
            raise ValueError(f"h5z-gpu: mode={mode!r} without a bound; give both, such as Lossy(1e-3, {mode!r}), or "
                             f"one of {', '.join(f'{k}=' for k in modes.bounds())}")
        if bound is not None:
            short = {m.name: keyword for keyword, m in modes.bounds().items()}
            mode = "abs" if mode is None else mode
            if mode not in short:
                raise ValueError(f"h5z-gpu: mode {mode!r}; allowed are {', '.join(short)}; Lossless() keeps every bit")
            if given:
                raise ValueError(f"h5z-gpu: two bounds, {bound!r} and {next(iter(given))}; give one of them")
            given[short[mode]] = bound
        if len(given) != 1:
            what = f"several bounds, {' and '.join(given)}; give one of them" if given else (
                "no bound; give one, such as Lossy(absolute=1e-3), or keep every bit with Lossless()")
            raise ValueError(f"h5z-gpu: {what}")
        (keyword, value), = given.items()
        number, codec = _number(keyword, value), _codec(codec)
        config: dict[str, Any] = {keyword: number, "codec": codec}
        kept = keeping.text(keeping.names(keep))
        if kept:
            config["keep"] = kept
        if fill_value is not None:
            config["fill_value"] = _named(_fill(fill_value))
        ranged = [k for k, m in modes.bounds().items() if m.of == "range"]
        if of not in ("chunk", "dataset") or (of == "dataset" and keyword not in ranged):
            raise ValueError(f'h5z-gpu: of={of!r} with {keyword}; "dataset" goes with {" and ".join(ranged)}, '
                             'everything else is of="chunk"')
        if of == "dataset":
            config["of"] = of
        beside = f",keep={kept}" if kept else ""
        super().__init__(f"mode={modes.bounds()[keyword].name},bound={number!r},codec={codec}{beside}", config)

    @property
    def filter_options(self) -> tuple[int, ...]:
        """The words to give to HDF5, one number, three or four. Raises ValueError where they would not say all."""
        words = self.words
        if self.fill_value is not None:
            fill = self.fill_value
            raise ValueError(f"h5z-gpu: fill_value={fill!r} would be lost, since words do not hold it. Write "
                             f"**{self!r} in place of compression=...; or give it to HDF5: "
                             f"compression={self._with(fill_value=None)!r} and fillvalue={fill!r} (h5py, h5netcdf), "
                             f"'_FillValue': {fill!r} (xarray's encoding)")
        return words

    @property
    def words(self) -> tuple[int, ...]:
        """As `filter_options`, for who hands on the fill value by another way."""
        if self.of == "dataset":
            raise ValueError(
                f'h5z-gpu: the filter sees chunks, not the dataset of {self!r}: write by h5z_gpu.save, or give '
                "compression=how.for_array(array), which is the absolute bound that it comes to"
            )
        return self._words

    @property
    def fill_value(self) -> float | int | None:
        """What stands for missing values, or None."""
        fill = self._config.get("fill_value")
        return _NAMED[fill] if isinstance(fill, str) else fill

    @property
    def of(self) -> str:
        """Whose range a relative bound follows, of each "chunk" or of the "dataset"."""
        return cast(str, self._config.get("of", "chunk"))

    def for_array(self, array: Any) -> Lossy | Lossless:
        """The filter for this array: a bound of its whole range as the absolute bound that it comes to.

        Parameters
        ----------
        array : array_like of float16, float32 or float64
            All the data, of any shape; NaN, infinities and the fill value stretch no range.

        Returns
        -------
        Lossy or Lossless
            `self` for of="chunk". Lossless where all values are the same, or none is finite.
        """
        if self.of == "chunk":
            return self
        from .views import value_range  # NumPy is needed for nothing else here

        return self.for_range(value_range(array, fill_value=self.fill_value))

    def for_range(self, found: tuple[float, float] | None) -> Lossy | Lossless:
        """As `for_array`, of a least and a largest value; None: there are no finite values."""
        if self.of == "chunk":
            return self
        span = Fraction(0) if found is None else Fraction(found[1]) - Fraction(found[0])
        value = self._config.get("relative")
        factor = Fraction(value) if value is not None else Fraction(10 ** (-self._config["psnr"] / 20))
        bound = min(float(min(factor * span, Fraction(sys.float_info.max))), sys.float_info.max)
        if Fraction(bound) > factor * span:
            bound = math.nextafter(bound, 0)
        if bound <= 0:
            return Lossless()
        return Lossy(absolute=bound, codec=self.codec, keep=self.keep, fill_value=self._config.get("fill_value"))

    def _kwargs(self) -> dict[str, Any]:
        return super()._kwargs() | ({} if self.fill_value is None else {"fillvalue": self.fill_value})

    def _with(self, *, fill_value: SupportsFloat | str | None) -> Lossy:
        """The same with another fill value or, by None, without."""
        return Lossy(**(self._config | {"fill_value": fill_value}))

    def _key(self) -> tuple[Any, ...]:
        fill = self.fill_value
        return (*super()._key(), self.of, None if fill is None else struct.pack("<d", fill))


class Lossless(_Filter):
    """Keeps every bit.

    Parameters
    ----------
    codec : {"auto", "fast", "small", "planes", "ndzip"}
        With "auto" a sample of each chunk chooses: planes, which a GPU codes too, or what makes the chunk smaller on
        the CPU. The others are always those named.

    Raises
    ------
    ValueError
        For a codec that needs a bound, or none of the plugin's.
    TypeError
        For unknown keywords.
    """

    def __init__(self, codec: str = "auto", **unknown: NoReturn) -> None:
        if unknown:
            raise TypeError(
                f"h5z-gpu: Lossless has no {', '.join(unknown)}; it has codec; a bound belongs to Lossy(absolute=1e-3)"
            )
        super().__init__(f"mode=lossless,codec={_codec(codec)}", {"codec": codec})

    of = "chunk"

    def for_array(self, array: Any) -> Lossless:
        """Itself: no bound follows a range."""
        return self

    def for_range(self, found: tuple[float, float] | None) -> Lossless:
        """Itself."""
        return self


How = Union[Lossy, Lossless]


def words_of(dataset: h5py.Dataset) -> Optional[tuple[int, ...]]:
    """The words of our filter, or None where the dataset has no such filter."""
    properties = dataset.id.get_create_plist()
    filters = (properties.get_filter(i) for i in range(properties.get_nfilters()))
    return next((tuple(f[2]) for f in filters if f[0] == FILTER_ID), None)


def _number(what: str, value: SupportsFloat) -> float:
    """`value` as a float. A text or a bool is a slip."""
    if isinstance(value, (str, bytes, bool)) or not hasattr(value, "__float__"):
        raise TypeError(f"h5z-gpu: {what} = {value!r} is no number; give one such as 1e-3")
    return float(value)


def _codec(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"h5z-gpu: codec = {name!r}; give a name such as 'lorenzo'")
    if "," in name or "=" in name:
        raise ValueError(f"h5z-gpu: codec {name!r}; give a name alone, such as 'lorenzo'")
    return name


def _fill(value: SupportsFloat | str) -> float | int:
    """A fill value as Python's int or float, by which h5py and netCDF4 convert it to the type of the data."""
    if isinstance(value, str) and value in _NAMED:
        return _NAMED[value]
    number = _number("fill_value", cast(SupportsFloat, value))
    if hasattr(value, "__index__"):
        return int(cast(Any, value))
    return number


def _named(value: float | int) -> float | int | str:
    return value if math.isfinite(value) else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"

