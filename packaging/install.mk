# SPDX-License-Identifier: MIT OR Apache-2.0
# make install PREFIX=/usr/local DESTDIR=     what `make` has built, with header, pkg-config and CMake files, licences,
#                                             man page
# make uninstall                              with the same variables: takes all of it away again
#
#     PREFIX/lib/h5z-gpu/plugin/libh5zgpu.so  the plugin, alone in its folder: HDF5 opens every library that lies beside
#                                             one
#     PREFIX/lib/hdf5/plugin/libh5zgpu.so     link to it, where HDF5 libraries of this prefix look
#     PREFIX/lib/libh5zgpu.so                 link to it, for programs that call h5z_gpu.h
#     PREFIX/lib/h5z-gpu/preload/             the library of `h5z-gpu run`, where HDF5 does not look by itself
#     PREFIX/lib/h5z-gpu/bin/h5z-gpu          the program, which looks for ../plugin; PREFIX/bin has a link to it
#
# Nothing is built here, so that root need not run compilers.

PREFIX          ?= /usr/local
EXEC_PREFIX     ?= $(PREFIX)
BINDIR          ?= $(EXEC_PREFIX)/bin
LIBDIR          ?= $(EXEC_PREFIX)/lib
INCLUDEDIR      ?= $(PREFIX)/include
DATADIR         ?= $(PREFIX)/share
MANDIR          ?= $(DATADIR)/man
DOCDIR          ?= $(DATADIR)/doc/h5z-gpu
# Folders in which HDF5 libraries look. Debian's look in /usr/lib/MULTIARCH/hdf5/serial/plugins, for example.
HDF5_PLUGINDIRS ?= $(LIBDIR)/hdf5/plugin

OURS       := $(LIBDIR)/h5z-gpu
PLUGIN_DIR := $(OURS)/plugin
VERSION    := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
DOCS       := LICENSE LICENSE-MIT LICENSE-APACHE packaging/THIRD-PARTY.txt README.md CHANGELOG.md
PRELOAD    := $(INTO)/preload/libh5zgpu_preload.so
BUILT      := $(PLUGIN) $(PRELOAD) $(INTO)/bin/h5z-gpu

.PHONY: install uninstall installed-files

# $(call from,FOLDER,THING): THING as seen from FOLDER, so that what was installed may be moved as a whole.
from = $(shell realpath -ms --relative-to="$(1)" "$(2)")
# $(call link,THING,FOLDER,NAME)
link = install -d "$(DESTDIR)$(2)" && ln -sfn "$(call from,$(2),$(1))" "$(DESTDIR)$(2)/$(3)"
# $(call fill,IN,FOLDER,NAME): a file with its @WORDS@ filled in, as seen from its folder.
fill = install -d "$(DESTDIR)$(2)" && sed -e 's|@VERSION@|$(VERSION)|g' -e 's|@prefix@|$(call from,$(2),$(PREFIX))|g' \
    -e 's|@libdir@|$(call from,$(2),$(LIBDIR))|g' -e 's|@includedir@|$(call from,$(2),$(INCLUDEDIR))|g' \
    -e 's|@plugindir@|$(call from,$(2),$(PLUGIN_DIR))|g' -e 's|@bindir@|$(call from,$(2),$(BINDIR))|g' \
    packaging/$(1) >"$(DESTDIR)$(2)/$(3)" && chmod 644 "$(DESTDIR)$(2)/$(3)"

install:
	@for f in $(BUILT); do \
	    [ -e $$f ] || { echo "$$f is missing: run \`make\` first, as the user who builds"; exit 1; }; done
	@case "$(PREFIX) $(LIBDIR)" in /*\ /*\ * | [!/]* | *\ [!/]*) \
	    echo "PREFIX is \"$(PREFIX)\": give a whole path without blanks, such as /usr/local"; exit 1 ;; esac
	@install -d "$(DESTDIR)$(PLUGIN_DIR)" "$(DESTDIR)$(OURS)/preload" "$(DESTDIR)$(OURS)/bin" \
	    "$(DESTDIR)$(INCLUDEDIR)" "$(DESTDIR)$(DOCDIR)" "$(DESTDIR)$(MANDIR)/man1"
	@install -m 755 $(PLUGIN) "$(DESTDIR)$(PLUGIN_DIR)/"
	@install -m 755 $(PRELOAD) "$(DESTDIR)$(OURS)/preload/"
	@install -m 755 $(INTO)/bin/h5z-gpu "$(DESTDIR)$(OURS)/bin/"
	@$(call link,$(OURS)/bin/h5z-gpu,$(BINDIR),h5z-gpu)
	@$(call link,$(PLUGIN_DIR)/libh5zgpu.so,$(LIBDIR),libh5zgpu.so)
	@$(foreach d,$(HDF5_PLUGINDIRS),$(call link,$(PLUGIN_DIR)/libh5zgpu.so,$(d),libh5zgpu.so) &&) true
	@install -m 644 plugin/include/h5z_gpu.h "$(DESTDIR)$(INCLUDEDIR)/"
	@install -m 644 $(DOCS) "$(DESTDIR)$(DOCDIR)/"
	@install -m 644 packaging/h5z-gpu.1 "$(DESTDIR)$(MANDIR)/man1/"
	@$(call fill,h5z-gpu.pc.in,$(LIBDIR)/pkgconfig,h5z-gpu.pc)
	@$(call fill,h5z-gpu-config.cmake.in,$(LIBDIR)/cmake/h5z-gpu,h5z-gpu-config.cmake)
	@$(call fill,h5z-gpu-config-version.cmake.in,$(LIBDIR)/cmake/h5z-gpu,h5z-gpu-config-version.cmake)
	@$(call fill,modulefile.in,$(DATADIR)/modulefiles/h5z-gpu,$(VERSION))
	@echo "h5z-gpu $(VERSION) is in $(DESTDIR)$(PREFIX). So that every HDF5 finds the filter:"
	@echo "    eval \"\$$($(BINDIR)/h5z-gpu env)\""
	@echo "or, where no other plugins are used:"
	@echo "    export HDF5_PLUGIN_PATH=$(PLUGIN_DIR)"

# Every file that `install` makes, one a line.
installed-files:
	@printf '%s\n' $(PLUGIN_DIR)/libh5zgpu.so $(OURS)/preload/libh5zgpu_preload.so \
	    $(OURS)/bin/h5z-gpu \
	    $(BINDIR)/h5z-gpu $(LIBDIR)/libh5zgpu.so \
	    $(addsuffix /libh5zgpu.so,$(HDF5_PLUGINDIRS)) $(INCLUDEDIR)/h5z_gpu.h \
	    $(addprefix $(DOCDIR)/,$(notdir $(DOCS))) $(MANDIR)/man1/h5z-gpu.1 $(LIBDIR)/pkgconfig/h5z-gpu.pc \
	    $(LIBDIR)/cmake/h5z-gpu/h5z-gpu-config.cmake $(LIBDIR)/cmake/h5z-gpu/h5z-gpu-config-version.cmake \
	    $(DATADIR)/modulefiles/h5z-gpu/$(VERSION)

# Folders that are empty then go too. In /usr and /usr/local, which belong to the system, only those that have our name.
uninstall:
	@$(MAKE) -s --no-print-directory installed-files | while read -r f; do \
	    rm -f "$(DESTDIR)$$f"; \
	    case "$(PREFIX):$$f" in /usr:*/h5z-gpu/* | /usr/local:*/h5z-gpu/*) f=$${f%h5z-gpu/*}h5z-gpu; \
	        find "$(DESTDIR)$$f" -depth -type d -empty -delete 2>/dev/null || true; continue ;; \
	    /usr:* | /usr/local:*) continue ;; esac; \
	    [ ! -d "$(DESTDIR)$(PREFIX)" ] \
	        || (cd "$(DESTDIR)/" && rmdir -p --ignore-fail-on-non-empty ".$${f%/*}" 2>/dev/null) || true; \
	done
	@echo "h5z-gpu is gone from $(DESTDIR)$(PREFIX)"
