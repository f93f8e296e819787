# SPDX-License-Identifier: MIT OR Apache-2.0
# make check-packages    builds, installs and tries wheels, sdist, packages of systems, containers, the jar for Java;
#                        needs a network and half an hour to an hour on two cores. K=debian names one of them.

.PHONY: check-packages

# An environment of its own: the tools' dependencies must not meet those of the tests.
target/package-env/made: packaging/check/requirements.txt
	@tests/need.sh python3=python3 py:ensurepip=python3-venv py:venv=python3-venv
	@echo "Python packages for checking packages"
	@python3 -m venv target/package-env
	@target/package-env/bin/python -m pip install --quiet --disable-pip-version-check -r $< && touch $@

check-packages: $(PLUGIN) target/package-env/made
	@tests/need.sh dh=debhelper lintian=lintian fakeroot=fakeroot qemu-aarch64=qemu-user readelf=binutils \
	    javac=default-jdk-headless x86_64-w64-mingw32-gcc=gcc-mingw-w64-x86-64 wine=wine /usr/lib/wine/wine64=wine64 \
	    h5repack=hdf5-tools openssl=openssl /usr/include/openssl/evp.h=libssl-dev \
	    /usr/lib/%multiarch/hdf5/serial/libhdf5.a=libhdf5-dev cmake=cmake pkg-config=pkgconf \
	    modulecmd=environment-modules buildah=buildah mmdebstrap=mmdebstrap rpmbuild=rpm
	@target/package-env/bin/python -m pytest -v -p no:cacheprovider packaging/check $(if $(K),-k '$(K)')
