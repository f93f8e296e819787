# SPDX-License-Identifier: MIT OR Apache-2.0
"""A model of plain open and save: xarray_saves.py FOLDER FIRST COUNT.

Each seed opens a random file (of xarray_model.py) by a random engine, changes the dataset as users do, and saves it by
a random engine, once as it is and once with nothing that xarray could not write by itself. What the second can be saved
as, the first can: the same values, or within the bound of a variable that may lose bits, under the filter that the
variable had.
"""
import os
import sys
import warnings

import numpy as np
import xarray as xr
from xarray_model import Case

import h5z_gpu.xarray
from h5z_gpu import Lossless, Lossy
from h5z_gpu.origins import OTHERS, takes_bound

OURS = ("compression", "compression_opts", "complevel", "shuffle", "fletcher32", *OTHERS)


class Saved:
    def __init__(self, folder, seed):
        self.case = Case(folder, seed)
        self.rng = self.case.rng
        self.out = os.path.join(folder, f"{seed}.out.nc")

    def changed(self, ds):
        """What users do between opening and saving."""
        ds, done = ds.drop_vars(["pair", "flag"], errors="ignore"), []  # which xarray does not write
        for _ in range(int(self.rng.integers(0, 5))):
            step = self.case.pick("cut turn type name chunk load grow coordinate encode more".split())
            names = [n for n in ds.data_vars if ds[n].dtype.kind in "fiu"]
            if not names:
                break
            name = self.case.pick(names)
            done.append((step, name))
            if step == "cut":
                ds = ds.isel({d: slice(int(self.rng.integers(0, n + 1)), None) for d, n in ds.sizes.items()
                              if self.rng.random() < 0.4})
            elif step == "turn":
                ds = ds.transpose(*self.rng.permutation(list(ds.dims)))
            elif step == "type":
                values = ds[name].astype(self.case.pick(("f4", "f8", "i4", "i2")))
                values.encoding = {k: x for k, x in ds[name].encoding.items() if k not in (
                    "dtype", "scale_factor", "add_offset", "_FillValue", "missing_value")}
                ds = ds.assign({name: values})
            elif step == "name":
                ds = ds.rename({name: name + "_"})
            elif step == "chunk":
                ds = ds.chunk({d: int(self.rng.integers(1, max(2, n + 1))) for d, n in ds.sizes.items()})
            elif step == "load":
                ds = ds.load()
            elif step == "grow" and ds[name].ndim and ds[name].size:
                d = self.case.pick(ds[name].dims)
                ds = xr.concat([ds, ds], d, data_vars="minimal", coords="minimal", compat="override", join="override")
            elif step == "coordinate":
                ds = ds.set_coords(name)
            elif step == "encode" and self.rng.random() < 0.3 and ds[name].ndim:
                ds[name].encoding["compression"] = self.case.pick((Lossy(absolute=0.25), Lossless()))
            elif step == "more":
                ds = ds.assign(result=ds[name] * 2)
        return ds, done

    def check(self):
        opened, engine = self.case.pick(("h5z_gpu", "h5netcdf", "netcdf4")), self.case.pick(("h5netcdf", "netcdf4"))
        if opened == "netcdf4" and self.case.made != self.case.by_netcdf4:
            opened = "h5netcdf"  # netCDF-C takes float16 for texts, and crashes
        keys = {"phony_dims": "access"} if opened == "h5netcdf" else {}
        with xr.open_dataset(self.case.path, engine=opened, decode_times=False, **keys) as ds:
            if any(v.encoding.get("dtype", v.dtype) == "f2" for v in ds.variables.values()):
                engine = "h5netcdf"
            where = (self.case.path, opened, engine)
            try:
                new, done = self.changed(ds)
            except ValueError:  # of concat, where dimensions do not fit
                return 0
            where += (done,)
            plain = new.copy()
            for v in plain.variables.values():
                v.encoding = {k: x for k, x in v.encoding.items() if k not in OURS}
                if any(c > n for c, n in zip(v.encoding.get("chunksizes") or (), v.shape)):
                    v.encoding.pop("chunksizes")
            more = {"unlimited_dims": ()} if self.rng.random() < 0.3 else {}
            try:
                for v in plain.variables.values():
                    v.encoding.pop("source", None)
                plain.to_netcdf(self.out, engine=engine, **more)
                expected = xr.load_dataset(self.out, engine=engine, decode_times=False)
            except Exception:  # what xarray cannot write at all
                return 0
            finally:
                if os.path.exists(self.out):
                    os.remove(self.out)
            try:
                had = h5z_gpu.xarray.filters_of(new)
            except ValueError:
                had = None
            try:
                new.to_netcdf(self.out, engine=engine, **more)
            except ValueError as why:
                assert had is None and "may have been any of these" in str(why), where
                return 0
            with xr.open_dataset(self.out, engine="h5z_gpu", decode_times=False) as found:
                self.compare(expected, found, had, new, where)
            os.remove(self.out)
        return 1

    def compare(self, expected, found, had, new, where):
        assert set(expected.variables) == set(found.variables) and expected.sizes == found.sizes, where
        for name, v in expected.variables.items():
            how = found[name].encoding.get("compression")
            x, y = np.asarray(v.values), np.asarray(found[name].values)
            at = (*where, name, how)
            assert x.dtype == y.dtype and x.shape == y.shape and v.dims == found[name].dims, at
            packed = "scale_factor" in v.encoding or "add_offset" in v.encoding
            said = "lossy_compression" in found[name].encoding
            if isinstance(how, Lossy):
                assert takes_bound(found[name].encoding["dtype"]) and not packed and said, at
                self.within(x, y, how, at)
            else:
                assert x.tobytes() == y.tobytes() or (x.dtype.kind == "O" and (x == y).all()), at
                old = new.variables[name]  # of an earlier loss of these values, and of none that they were made of
                lost = old.attrs if "source" in old.encoding else {}
                assert said == ("lossy_compression" in {**lost, **old.encoding}), at
            if had is not None and v.ndim and v.size and isinstance(had.get(name), (Lossy, Lossless)):
                lossy = takes_bound(found[name].encoding["dtype"]) and name in found.data_vars
                kept = had[name] if lossy or isinstance(had[name], Lossless) else Lossless()
                assert how == kept, (*at, had[name])

    def within(self, x, y, how, at):
        seen = np.isfinite(x)
        some = x[seen].astype("f8")
        # The fill value of the files, -7, may be in the range, and a value near it may come back as it (lorenzo).
        wide = max(some.max() - min(some.min(), -7), abs(some).max()) if some.size else 0
        bound = how.bound * (wide if how.mode.keyword == "relative" else 1) * (1 + 1e-6)
        became = seen & np.isnan(y)
        assert not (~seen & np.isfinite(y)).any() and (np.abs(x[became] + 7.0) <= bound).all(), at
        both = seen & ~became
        error = np.abs(x[both].astype("f8") - y[both].astype("f8"))
        assert not error.size or error.max() <= bound, (at, error.max())


if __name__ == "__main__":
    folder, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("ignore")
    saved = 0
    for seed in range(first, first + count):
        try:
            case = Saved(folder, seed)
            saved += case.check()
        except BaseException:
            print("seed", seed)
            raise
        for path in (case.case.path, case.out):
            if os.path.exists(path):
                os.remove(path)
    print(saved, "of", count, "are saved with what they had")
