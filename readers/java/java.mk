# SPDX-License-Identifier: MIT OR Apache-2.0
# make java    the jar with which netCDF-Java, and so Panoply, THREDDS, ToolsUI and IDV, reads: target/java/$(JAR_NAME).
#              Then its check: all golden vectors, frames to be refused, random frames that the tests of the crate left,
#              frames that are changed at random, speed.
#              NETCDF_JAVA=netcdfAll.jar (a class path) adds values that netCDF-Java reads out of tests/files
#
# The jar is compiled against src/stub, two classes of netCDF-Java as far as they are used, and holds neither. It needs
# no other jar. Java 8 and newer run it.

JAVA_TREE := readers/java
JAR_NAME  := h5z-gpu-netcdf-java.jar
JAR       := target/java/$(JAR_NAME)
JAVAC_8   := javac --release 8 -encoding UTF-8 -Xlint:all,-options -Werror

.PHONY: java

java_sources = $(shell find $(JAVA_TREE)/src/$(1) -type f)

target/java/stub/made: $(call java_sources,stub)
	@tests/need.sh javac=default-jdk-headless
	@mkdir -p $(@D) && $(JAVAC_8) -d $(@D) $^ && touch $@

$(JAR): $(call java_sources,main) $(JAVA_TREE)/java.mk target/java/stub/made
	@rm -rf target/java/classes && mkdir -p target/java/classes/META-INF/licences
	@$(JAVAC_8) -cp target/java/stub -d target/java/classes $(filter %.java,$^)
	@cp -r $(JAVA_TREE)/src/main/resources/. target/java/classes && cp $(LICENCES) target/java/classes/META-INF/licences
	@sed -n 's/^version = "\(.*\)"/Implementation-Version: \1/p' Cargo.toml | head -1 >target/java/manifest
	@echo "Automatic-Module-Name: org.h5zgpu" >>target/java/manifest
	@jar cfm $@ target/java/manifest -C target/java/classes .

target/java/check/made: $(call java_sources,check) $(JAR)
	@rm -rf $(@D) && mkdir -p $(@D) && $(JAVAC_8) -cp $(JAR) -d $(@D) $(filter %.java,$^) && touch $@

java: target/java/check/made
	@echo "$(JAR): $$(wc -c <$(JAR)) bytes"
	@java -ea -cp $(JAR):target/java/check org.h5zgpu.check.Vectors tests/vectors $(wildcard $(BUILDS)/tmp/readers)
	@java -ea -Xmx256m -cp $(JAR):target/java/check org.h5zgpu.check.Damage tests/vectors 20 1
	@java -cp $(JAR):target/java/check org.h5zgpu.check.Speed tests/vectors/v2
	@$(if $(wildcard $(BUILDS)/tmp/readers),:,echo \
	    "Not tried: random frames. cargo test -p h5z-gpu --test promises leaves them")
	@$(if $(NETCDF_JAVA),NETCDF_JAVA='$(NETCDF_JAVA)' python3 $(JAVA_TREE)/values.py $(JAR),echo \
	    "Not tried: netCDF-Java itself. NETCDF_JAVA=netcdfAll.jar adds it")
