# Everything from a clone: `make run` and `make test` set up what they need.
# What is fetched or built outside of .venv lies in the cache folder (tools/cache.py).

## make run                 the broker on this computer; behind it may stand
##     PORT=1884                another port than 1883 (-p of slotmq run)
##     CONF=slotmq.conf         a configuration (-c)
##     RUNTIME=micropython      another Python than cpython (--runtime)
##     BOARD=RPI_PICO_W         the limits and the heap of a folder in boards/ (--board)
## make clients             mosquitto_pub and mosquitto_sub, in .venv/bin
## make telemetry-demo      boards record here, are harvested, and become tables and a page
## make test                the tests of all that runs on a computer, but for those of the next two
## make test-spark          of these, the ones of the tables that Spark makes of recordings
## make test-telemetry      the same under kill -9, on a cluster, and the demo
## make test-board          the broker on an emulated RP2040 (the first time builds its image)
## make emulated            an emulated RP2040 to try it on, until Ctrl-C; it is kept in build/board
## make bench               all workloads and peers, into docs/performance.md
## make bench-telemetry     the decoder and the tables, into docs/benchmarks-telemetry.md
## make bench-instructions  counts instructions and system calls
## make lint                the rules only
## make format              puts the code into its form
## make setup               fetches whatever the tests need
## make clean               takes all away again but the cache
## make java                fetches a Java where there is none
## make help                this

PYTHON ?= python3
RUNTIME ?= cpython
BOARD ?= HOST
PORT ?=
CONF ?=

BIN := .venv/bin
PACKAGES := .venv/packages
HOST_CODE := tools boards host_tests

.PHONY: run clients telemetry-demo bench-telemetry test test-spark test-telemetry test-board emulated java bench bench-instructions lint format setup clean help

run: .venv/installed
	$(BIN)/slotmq run --runtime "$(RUNTIME)" --board "$(BOARD)" \
		$(if $(PORT),-p "$(PORT)") $(if $(CONF),-c "$(CONF)")

clients: .venv/installed
	$(BIN)/python -m slotmq_tools.clients $(BIN)

test: setup lint
	$(BIN)/python -m slotmq_tools.heap
	$(BIN)/python -m pytest -n 3
	$(MAKE) test-spark

# Each in one process, since every process would start a Spark of its own.
test-spark: setup java
	$(SPARK_TESTS) --ignore host_tests/spark/slow host_tests/spark

test-telemetry: setup java
	$(SPARK_TESTS) host_tests/spark/slow

# Spark's libraries have warnings.
SPARK_TESTS = $(BIN)/python -m pytest -o addopts="-ra --strict-markers --strict-config" \
	--timeout 300 -W default

# Where the system has none.
java: .venv/installed-telemetry
	[ -n "$$JAVA_HOME" ] || command -v java >/dev/null || $(MAKE) .venv/installed-java

# Whatever the tests would fetch, before their time limits run.
setup: .venv/installed-test .venv/installed-telemetry
	$(BIN)/python -m slotmq_tools.fetch

# Builds the image before the tests' time limits run. The tests wait more than they compute:
# each file of them has a board of its own, and they run side by side; but for what is measured.
test-board: .venv/installed-test
	$(BIN)/python -m slotmq_tools.emulator
	$(BOARD_TESTS) -n 6 --dist loadfile --ignore host_tests/board/timed host_tests/board
	$(BOARD_TESTS) host_tests/board/timed

BOARD_TESTS = $(BIN)/python -m pytest -o addopts="-ra --strict-markers --strict-config" \
	--timeout 900

emulated: .venv/installed-test
	$(BIN)/python -m slotmq_tools.emulator --run build/board

DEMO = build/telemetry

telemetry-demo: java
	rm -rf $(DEMO)
	$(BIN)/slotmq telemetry demo $(DEMO)

lint: .venv/installed-test .venv/installed-telemetry
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m slotmq_tools.tidy

format: .venv/installed-test
	$(BIN)/ruff format $(HOST_CODE)
	$(BIN)/ruff check --fix .

bench: .venv/installed-bench
	$(BIN)/python -m slotmq_tools.bench

bench-telemetry: java .venv/installed-bench-telemetry
	$(BIN)/python -m slotmq_tools.telemetry.bench

bench-instructions: .venv/installed-test
	$(BIN)/python -m slotmq_tools.bench.instructions

# The cache stays: `rm -r ~/.cache/slotmq` is safe while nothing runs out of it.
clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

help:
	@sed -n 's/^## //p' $(MAKEFILE_LIST)

# .venv/installed-EXTRA: the project with that extra is in the environment.
.venv/installed: .venv/bin/pip pyproject.toml
	$(BIN)/pip install --editable .
	mkdir -p $(PACKAGES)
	ln -sfn ../../lib/slotmq $(PACKAGES)/slotmq
	ln -sfn ../../tools $(PACKAGES)/slotmq_tools
	ln -sfn ../../boards $(PACKAGES)/slotmq_boards
	touch $@

.venv/installed-%: .venv/installed
	$(BIN)/pip install --editable '.[$*]'
	touch $@

.venv/bin/pip:
	$(PYTHON) -m tools.bootstrap .venv
