# Targets print themselves: make help.
.DEFAULT_GOAL := help
.PHONY: help build test race bench microbench torture fuzz lint cross tidy ci

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

build: ## build idemctl into the current folder
	go build -o idemctl ./cmd/idemctl

test: ## run all tests
	go test ./...

race: ## run all tests under the race detector, crash rounds shortened
	go test -race -short ./...

bench: ## run idem beside other stores, about ten minutes: see docs/performance.md
	cd bench && go run .

microbench: ## run the short benchmarks: read them as ratios within one run
	go test -run '^$$' -bench . .

torture: ## crash, kill and model tests for ten minutes
	IDEM_TORTURE=10m go test -run Torture -timeout 0 -parallel 8 -v . ./internal/journal

fuzz: ## run every fuzz target for a minute
	@go list ./... | while read -r p; do go test -list '^Fuzz' $$p | grep '^Fuzz' | while read -r t; do \
		echo "$$p $$t"; go test -run '^$$' -fuzz "^$$t\$$" -fuzztime 60s $$p || exit 1; done || exit 1; done

lint: ## run golangci-lint, where it is installed
	golangci-lint run ./...

cross: ## vet for the other systems
	@for t in windows/amd64 darwin/arm64 linux/arm linux/386; do \
		echo $$t; GOOS=$${t%/*} GOARCH=$${t#*/} go vet ./... || exit 1; done

tidy: ## tidy go.mod
	go mod tidy

ci: ## everything that must hold for a change to land
	.ci/run
