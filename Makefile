# Everything from a clone: `make run` and `make test` set up what they need.
# What is fetched or built outside of .venv lies in the cache folder (tools/cache.py).

## make run                 the broker on this computer; behind it may stand
##     PORT=1884                another port than 1883 (-p of slotmq run)
##     CONF=slotmq.conf         a configuration (-c)
##     RUNTIME=micropython      another Python than cpython (--runtime)
##     BOARD=RPI_PICO_W         the limits and the heap of a folder in boards/ (--board)
## make clients             mosquitto_pub and mosquitto_sub, in .venv/bin
## make telemetry-demo      ten days of a greenhouse become tables and a page
## make quick               after each edit, in seconds: ruff, the own rules (tidy), and the fast
##                          unit tests on this Python
## make test                the rules, and the lanes below but for the board's
## make test-broker         the lane of the broker: unit tests, and those over the wire
## make test-host           the lane of what runs on computers: the command and its tools
## make test-telemetry      the lane of recordings, and of their harvest
## make test-spark          the lane of the tables that Spark makes
## make test-board          the broker on an emulated RP2040 (the first time builds its image)
## make nightly             of the first three lanes what is worth it once a day: byte by byte,
##                          planted faults, long properties, the simulator, what kills and wears,
##                          heaps, the tables that Spark makes, under kill -9 and on a cluster too
##     UNSTEADY=build/unsteady  of each of these: tests that failed and passed when they were run
##                          once more alone are listed there too, and counted together
## make fresh            what README says, in minimal Debians that debootstrap makes (as root)
##     RELEASES="trixie"        those, else trixie and bookworm
## make apps                applications of others, each in a round with this broker; fetches them
##                          (Node-RED, Zigbee2MQTT, Home Assistant); no lane runs it
##     APPS=Node-RED            only this one
## make emulated            an emulated RP2040 to try it on, until Ctrl-C; it is kept in build/board
## make bench               all workloads, into docs/performance.md and docs/measurements.md
## make bench-telemetry     the tables, for docs/measurements.md
## make bench-instructions  counts instructions and system calls
## make api                 a page of what a program may call, from docstrings and types: build/api
## make lint                the rules only
## make format              puts the code into its form
## make setup               fetches whatever the tests need
## make clean               takes all away again but the cache
## make java                fetches a Java where there is none
## make help                this

PYTHON ?= python3
RUNTIME ?= cpython
APPS ?=
BOARD ?= HOST
PORT ?=
CONF ?=
UNSTEADY ?=
RELEASES ?= trixie bookworm

BIN := .venv/bin
PACKAGES := .venv/packages
HOST_CODE := tools dev telemetry boards host_tests conftest.py

.PHONY: run clients telemetry-demo bench-telemetry quick test test-broker test-host test-telemetry test-spark test-board nightly fresh apps emulated java bench bench-instructions api lint format setup clean help

run: .venv/installed
	@$(BIN)/slotmq run --runtime "$(RUNTIME)" --board "$(BOARD)" \
		$(if $(PORT),-p "$(PORT)") $(if $(CONF),-c "$(CONF)")

clients: .venv/installed
	$(BIN)/python -m slotmq_dev.clients $(BIN)

quick: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/python -m slotmq_dev.tidy
	$(BIN)/python -m pytest -q -n 2 host_tests/broker/unit $(SLOW:%=--ignore-glob '*/unit/*/test_%.py')

# Of the unit tests those that take more than two seconds, which are left out there.
SLOW = commit_rot cuts cuts_by_row damage day_offline enumeration epoch epoch_rows failed_starts \
	guessing limit_relations locked_heap message_expiry ports_pressure quota reassembly stream_writes

test: setup lint java
	$(BIN)/python -m slotmq_dev.heap
	$(LANES) broker host telemetry

test-broker test-host: setup
	$(LANES) $(@:test-%=%)

test-telemetry: setup java
	$(LANES) telemetry

# Its tests are nightly, but CI runs them each time.
test-spark: setup java
	$(LANES) --nightly spark

nightly: setup java
	$(BIN)/python -m slotmq_dev.fetch nightly
	$(LANES) --nightly broker host telemetry spark
	$(MUTANTS) access delivery fast journal protocol tables v5 --seeds 25 --count 40 --least 45
	$(MUTANTS) $(BRIDGE:%=bridge/%.py) --seeds 8 --where bridge --count 20 --least 25
	$(MUTANTS) recorder --tests host_tests/broker/unit/recorder --count 24 --least 45

# Small faults at random, the same ones as long as lib/ is the same: what share is found?
MUTANTS = $(BIN)/python -m slotmq_dev.mutants --jobs 2
BRIDGE = link session mapping handshake

# What fails is run once more, alone: two tests that pass then are let pass.
LANES = $(BIN)/python -m slotmq_dev.lanes $(if $(UNSTEADY),--unsteady "$(UNSTEADY)")

# Where the system has none.
java: .venv/installed-telemetry
	[ -n "$$JAVA_HOME" ] || command -v java >/dev/null || $(MAKE) .venv/installed-java

# Whatever the tests would fetch, before their time limits run.
setup: .venv/installed-test .venv/installed-telemetry
	$(BIN)/python -m slotmq_dev.fetch

# Builds the image before the tests' time limits run.
test-board: .venv/installed-test
	$(BIN)/python -m slotmq_dev.emulator
	$(LANES) board

fresh:
	@$(PYTHON) -E -S -m dev.fresh $(RELEASES)

apps: .venv/installed-test
	$(BIN)/python -m slotmq_dev.apps $(if $(APPS),"$(APPS)")

emulated: .venv/installed-test
	$(BIN)/python -m slotmq_dev.emulator --run build/board

DEMO = build/telemetry

telemetry-demo: .venv/installed-telemetry
	rm -rf $(DEMO)
	$(BIN)/slotmq telemetry demo $(DEMO)

api: .venv/installed-api
	$(BIN)/pdoc --no-show-source -o build/api slotmq slotmq_tools.testing.mqtt

lint: .venv/installed-test .venv/installed-telemetry
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m slotmq_dev.tidy

format: .venv/installed-test
	$(BIN)/ruff format $(HOST_CODE)
	$(BIN)/ruff check --fix .

bench: .venv/installed-test
	$(BIN)/python -m slotmq_dev.bench --keep

bench-telemetry: java .venv/installed-bench-telemetry
	$(BIN)/python -m slotmq_dev.bench_telemetry

bench-instructions: .venv/installed-test
	$(BIN)/python -m slotmq_dev.bench.instructions

# The cache stays: `rm -r ~/.cache/slotmq` is safe while nothing runs out of it.
clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

# .venv/installed-EXTRA: the project with that extra is in the environment. Without slotmq.pth a
# clone that is called slotmq would hide the package from programs beside it.
.venv/installed: .venv/bin/pip pyproject.toml
	@echo "installing what the command slotmq needs into .venv (the first time only) ..."
	@$(BIN)/pip install --quiet --editable '.[deploy,sim]'
	@mkdir -p $(PACKAGES)
	@ln -sfn ../../lib/slotmq $(PACKAGES)/slotmq
	@ln -sfn ../../tools $(PACKAGES)/slotmq_tools
	@ln -sfn ../../boards $(PACKAGES)/slotmq_boards
	@ln -sfn ../../dev $(PACKAGES)/slotmq_dev
	@ln -sfn ../../firmware $(PACKAGES)/slotmq_firmware
	@echo "$(CURDIR)/$(PACKAGES)" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/slotmq.pth"
	@touch $@

.venv/installed-%: .venv/installed
	@echo "installing what $* needs into .venv ..."
	@$(BIN)/pip install --quiet --editable '.[$*]'
	@touch $@

# The same of slotmq-telemetry and its extras
.venv/installed-telemetry: .venv/installed telemetry/pyproject.toml
	@echo "installing what slotmq-telemetry needs into .venv ..."
	@$(BIN)/pip install --quiet --editable ./telemetry
	@ln -sfn ../../telemetry/slotmq_telemetry $(PACKAGES)/slotmq_telemetry
	@touch $@

.venv/installed-java .venv/installed-bench-telemetry: .venv/installed-%: .venv/installed-telemetry
	@echo "installing what $* needs into .venv ..."
	@$(BIN)/pip install --quiet --editable './telemetry[$(*:bench-telemetry=bench)]'
	@touch $@

.venv/bin/pip:
	@$(PYTHON) -E -S -m tools.bootstrap .venv
