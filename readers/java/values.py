# SPDX-License-Identifier: MIT OR Apache-2.0
"""Files through netCDF-Java and the jar, value for value.

    NETCDF_JAVA=netcdfAll.jar python3 readers/java/values.py JAR

in the root of the project reads every file of tests/files and compares each variable with the hash that is written
beside it. NETCDF_JAVA is a class path. `read` is what packaging/check/test_java.py asks.
"""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# netCDF-Java has no numbers of 16 bits with a point, and leaves such variables out.
UNKNOWN = {"halves"}


def read(jar, folder, *files):
    """What netCDF-Java reads: {variable: (type, count, SHA-256 of all values, of the inner ones) or ("refused", why)}.
    """
    path = os.pathsep.join([str(jar), os.environ["NETCDF_JAVA"]])
    source = ROOT / "readers/java/src/netcdf-check/java/org/h5zgpu/check/Values.java"
    subprocess.run(["javac", "--release", "8", "-nowarn", "-Xlint:none", "-cp", path, "-d", folder, source], check=True)
    said = subprocess.run(["java", "-ea", "-Xmx512m", "-cp", os.pathsep.join([str(folder), path]),
                           "org.h5zgpu.check.Values", *map(str, files)], check=True, stdout=subprocess.PIPE, text=True)
    lines = (line.split("\t") for line in said.stdout.splitlines())
    return {name: tuple(rest) for name, *rest in lines}


def main(jar):
    right, wrong = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for expected in sorted(ROOT.glob("tests/files/*/expected.json")):
            for name, hashes in json.loads(expected.read_text()).items():
                if name.endswith(".zip"):  # a store of Zarr
                    continue
                found = read(jar, folder, expected.with_name(name))
                for variable, value in hashes.items():
                    got = found.get(variable)
                    if got and got[2:3] == (value,):
                        right += 1
                    elif variable not in UNKNOWN or got:
                        wrong.append(f"{name}: {variable}: {got}")
    print(f"netCDF-Java: {right} variables of tests/files, {len(wrong)} wrong", *wrong, sep="\n")
    sys.exit(bool(wrong) or not right)


if __name__ == "__main__":
    main(sys.argv[1])
