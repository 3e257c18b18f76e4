# Two targets are all that a new user needs: `make run` and `make test`. `make check` is what CI runs before it.

GO      ?= go
BIN     := bin/catalogd
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)

.PHONY: run build test check shapes soak swaps churn bench bench-proxy conformance fuzz fuzz-short node fmt goldens clean

# Build catalogd and serve the starter catalog on http://127.0.0.1:8420.
run: build
	$(BIN) serve .

build:
	$(GO) build -trimpath -ldflags "-X main.release=$(VERSION)" -o $(BIN) ./cmd/catalogd

# Every test: Go with the race detector, twenty seconds of fuzzing for each way in, the policy's tests, the tools'
# examples, stock cue and opa.
test: node build
	CATALOGD_SOAK=1m $(GO) test -race -timeout 20m ./...
	$(MAKE) fuzz-short
	$(BIN) check .
	$(BIN) test .
	$(GO) tool opa check --strict policy/
	$(GO) tool opa test policy/
	$(GO) tool cue vet -c=false ./...

# The npm servers that the tests talk to, pinned in package-lock.json.
node: node_modules/.package-lock.json
node_modules/.package-lock.json: package.json package-lock.json
	npm ci --no-audit --no-fund
	touch $@

# The official MCP conformance suite, at six servers directly and through catalogd, and at catalogd as a client; then the
# clients that people use. It prints what passes, and is a part of `make test` too. testdata/conformance/README.md.
conformance: node
	$(GO) test -run '^(TestConformance|TestConformanceClient|TestClients)$$' -count 1 -v -timeout 20m .

# Format, tidiness, vet, staticcheck, then every test.
check: fmt
	$(GO) mod tidy -diff
	$(GO) vet ./...
	cd bench && $(GO) vet ./... && $(GO) tool -modfile=../go.mod staticcheck ./...
	GOOS=darwin $(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(MAKE) test

fmt:
	@out="$$(gofmt -l $$(git ls-files '*.go'))"; if [ -n "$$out" ]; then echo "gofmt: $$out"; exit 1; fi
	@$(GO) tool cue fmt --check schema.cue ./catalog/...
	@out="$$($(GO) tool opa fmt --list policy/)"; if [ -n "$$out" ]; then echo "opa fmt: $$out"; exit 1; fi

# Write the golden files again; review the difference.
goldens:
	CATALOGD_UPDATE=1 $(GO) test ./cmd/catalogd
	$(GO) test ./problem ./loader ./internal/serve ./contract/dialect -update

# A million calls with ever new keys, and the soak of TestSoak for ten minutes, with its times asserted; GOFLAGS=-race
# gives the daemon the race detector.
SOAK ?= 10m
soak:
	CATALOGD_CALLS=1000000 $(GO) test -run "^TestMemoryIsFlat$$" -count 1 -v -timeout 0 ./contract
	CATALOGD_SOAK=$(SOAK) $(GO) test -run '^TestSoak$$' -count 1 -v -timeout 0 .

# Ten minutes of the shapes of arguments that `make test` has a sample of, each held to CUE and to a second validator;
# SHAPES=all tries all of them, nearly six million, in some ten hours.
SHAPES ?= 10m
shapes:
	CATALOGD_SHAPES=$(SHAPES) $(GO) test -run '^TestShapes$$' -count 1 -v -timeout 0 ./internal/derive/shapes

# Ten thousand starts of a pinned command while it is swapped for another.
swaps:
	CATALOGD_SWAPS=10000 $(GO) test -run '^TestThreat$$/T7/swapped_while' -count 1 -v -timeout 0 ./internal/reach

# A thousand reloads of upstream servers, half of them with a kill under a call, and what is left after them.
RELOADS ?= 1000
churn:
	CATALOGD_RELOADS=$(RELOADS) $(GO) test -run '^TestNothingLeaks$$' -count 1 -v -timeout 0 ./internal/upstream

# What BENCHMARKS.md reports: the median of COUNT runs each. On a quiet machine this takes a quarter of an hour.
BENCHES := Compile|Edit|EditToListChanged|View|WarmStart10000|HTTP|List|Call|Scan|Decision|Check|CheckCatalog|CheckCoerced|CheckRefused|Args
COUNT   ?= 5
bench:
	$(GO) test -run '^$$' -bench '^Benchmark($(BENCHES))$$' -benchmem -count $(COUNT) -timeout 60m \
	  . ./loader ./contract ./decision ./internal/derive ./internal/worker ./internal/serve | awk -f .ci/medians.awk

# A call through catalogd beside one through a reverse proxy, and beside none, in one run: bench/README.md. Five minutes.
bench-proxy: build
	cd bench && $(GO) build -trimpath -o ../bin/bench .
	bin/bench -catalogd $(BIN) $(BENCH_PROXY)

# Each fuzz target for FUZZTIME, 10m for a long run. `make test` runs their seeds and what was ever found.
FUZZTIME ?= 20s
fuzz:
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 2s $$pkg || exit 1; \
	  done; \
	done

# The ways in: a message, a catalog, a command line.
fuzz-short:
	$(GO) test -run '^$$' -fuzz '^FuzzFront$$' -fuzztime 20s -fuzzminimizetime 2s ./internal/serve
	$(GO) test -run '^$$' -fuzz '^FuzzCompile$$' -fuzztime 20s -fuzzminimizetime 2s ./loader
	$(GO) test -run '^$$' -fuzz '^FuzzArgv$$' -fuzztime 20s -fuzzminimizetime 2s ./internal/binding
	$(GO) test -run '^$$' -fuzz '^FuzzImport$$' -fuzztime 20s -fuzzminimizetime 2s ./internal/mcpconfig

clean:
	rm -rf bin
