# Recipes are for /bin/sh. Every target with a ## comment is shown by `make help`.

GO      ?= go
SECONDS ?=
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS := -s -w -X main.version=$(VERSION) -X main.revision=$(REVISION)

export GOFLAGS := -buildvcs=false

.PHONY: help build demo test peers verify bench fuzz soak generate clean conformance

help: ## print this list
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' Makefile

build: ## the binary bin/wyegate, without cgo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/wyegate ./cmd/wyegate

demo: build ## the main job on loopback, with checks; SECONDS=20 ends by itself
	bin/wyegate demo $(if $(SECONDS),--seconds $(SECONDS))

test: ## everything that can be tested here; counts what it skipped and why
	@sh .ci/test

peers: ## install the Debian programs that tests talk to (needs root)
	sh .ci/peers

verify: ## format, vet, generated files up to date
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	$(GO) test -count=1 ./internal/archtest ./config -run 'Test.*(Schema|Imports|Pure|Home|Comments|Forbidden|LowerCase)'
	$(GO) mod verify

bench: build ## parse, choose, forward (compare allocations, not nanoseconds); then beside other programs, in ratios
	$(GO) test -run '^$$' -bench . -benchmem ./...
	$(GO) run ./internal/bench sip

fuzz: ## ten seconds of each fuzz target
	@sh .ci/fuzz 10s

conformance: ## HTTP/2 towards clients, judged by h2spec (from the module proxy; needs nginx, openssl, curl)
	@sh .ci/h2spec

soak: ## the long runs: every test that shortens itself in `make test` runs whole
	WYEGATE_SOAK=1 $(GO) test -count=1 -timeout 6h ./internal/engine/... ./cmd/...

generate: ## write the generated files that are committed (JSON schemas)
	$(GO) generate ./...

clean: ## remove what build made
	rm -rf bin
