# make run and make test are all that a fresh machine with Go needs; the rest is for those who change things.
.PHONY: appendix-b model run build test e2e crash kill bench bench-large lint fmt fuzz tools

TEST  := go test -race -shuffle=on
# The public clients race with themselves: where they run in the test process the detector is off. The gateway's own races
# under real clients are looked for by building the binary with it.
REAL  := go test -shuffle=on -timeout 40m
ROOMS := $$(go list ./... | grep -v '/e2e')
FUZZ  ?= 2m
# What every developer's gateway is built like, too.
BUILD := CGO_ENABLED=0 go build -trimpath -ldflags='-s -w'

run: build ## the gateway on configs/edge.yaml, with the embedded journal
	bin/isthmus run --config configs/edge.yaml

build: ## the static binary
	$(BUILD) -o bin/isthmus ./cmd/isthmus

test: tools ## everything: rooms first, then real clients against the real binary
	$(TEST) $(ROOMS)
	go test -shuffle=on ./core/dispatch
	$(REAL) ./adapters/rocketmq
	$(REAL) -run 'TestA4' ./adapters/pulsar
	$(REAL) ./e2e/...
	ISTHMUS_RACE=1 GORACE=halt_on_error=1 $(REAL) -count=1 -run 'TestMatrix|TestFleet' ./e2e

e2e: tools ## only the real clients
	$(REAL) ./e2e/...

crash: ## the power fails 2000 times at random operations; a failure prints the seed that plays it again
	go test -run CrashBench -count=1 ./core/engine -crash 2000

kill: tools ## SIGKILL to the real binary, 50 times, under real clients
	$(REAL) -count=1 -run KillLoop ./e2e -kills 50

appendix-b: tools ## groups whose members speak several protocols: ten minutes of joins, leaves and kills, and what measures time
	$(REAL) -count=1 -v -run 'TestB_' ./e2e -thorough -mix 10m

lint: ## go vet, then the linters of .golangci.yml at the version that tools/go.mod pins
	go vet ./...
	cd tools && go build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run ./...

BENCH := go test -run '^$$' -timeout 60m
bench: ## the engine's figures against a null baseline in the same run, at a size that takes minutes
	$(BENCH) -bench . ./core/engine
	$(BENCH) -bench Idle ./e2e

bench-large: ## the same with 10 million messages and 10 GB of backlog: needs 15 GB in TMPDIR
	$(BENCH) -bench . -benchtime 1x ./core/engine -large

model: ## the random models of delivery, of groups with members of several kinds and of whole logs, millions of steps
	go test ./core/dispatch -run Model -timeout 30m -args -rapid.checks=20000
	go test ./core/engine -run TestS2_28_MembersComeAndGo -timeout 30m -args -rapid.checks=10000
	go test ./core/engine -run ModelOfTheLog -timeout 60m -args -rapid.checks=20000

fmt:
	gofmt -w $$(git ls-files '*.go')

fuzz: ## every fuzz target for FUZZ (2m)
	@for p in $$(go list ./...); do for f in $$(go test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		echo "$$p $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZ) $$p || exit 1; done; done

# The tests in e2e also drive mosquitto's tools and clients in Java and Python. What is missing is installed where that is
# possible without asking; otherwise those tests are skipped, except in CI, where a missing tool fails them.
tools:
	@missing=; for t in cc:build-essential mosquitto_pub:mosquitto-clients java:default-jdk-headless mvn:maven python3:python3-venv; do \
		command -v $${t%%:*} >/dev/null || missing="$$missing $${t##*:}"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else echo "not installed, their tests are skipped:$$missing"; fi
