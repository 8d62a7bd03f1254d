# Everything here is plain go; make only saves typing.
.DEFAULT_GOAL := help

VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
REVISION := $(shell git rev-parse HEAD 2>/dev/null)
BRANCH   := $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null)
# The commit's time stands in for the build's, so that builds are reproducible.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
CREATED  := $(shell date -u -d '@$(SOURCE_DATE_EPOCH)' +%Y-%m-%dT%H:%M:%SZ 2>/dev/null)
INFO     := github.com/prometheus/common/version
LDFLAGS  := -s -w \
	-X $(INFO).Version=$(VERSION) \
	-X $(INFO).Revision=$(REVISION) \
	-X $(INFO).Branch=$(BRANCH) \
	-X $(INFO).BuildDate=$(CREATED)
OUT         := kpulse-proxy
CGO_ENABLED := 0
# cgo for another processor needs its C compiler; these are Debian's names.
CC_amd64    := x86_64-linux-gnu-gcc
CC_arm64    := aarch64-linux-gnu-gcc
FUZZTIME    ?= 60s
FUZZJOBS    ?= 2

help: ## Show this help
	@awk -F ':.*## ' '/^##@/{printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build

build: ## Build ./kpulse-proxy, static; CGO_ENABLED=1 adds --backend=nvml
	CGO_ENABLED=$(CGO_ENABLED) $(if $(GOARCH),CC=$(CC_$(GOARCH))) go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o '$(OUT)' ./cmd/kpulse-proxy

# SUPPLY prints the path of a tool for the supply chain, built for this machine. What it reports depends on the target.
SUPPLY := env -u GOOS -u GOARCH -u CGO_ENABLED go tool -modfile=deploy/packages/supply/go.mod -n

bundle: ## Build into DIR, with the licences of all linked modules
	@test -n '$(DIR)' || { echo 'DIR is not set: make bundle DIR=/tmp/bundle'; exit 1; }
	mkdir -p '$(DIR)/licenses'
	$(MAKE) build OUT='$(DIR)/kpulse-proxy'
	install -m 0644 LICENSE '$(DIR)/licenses/LICENSE'
	CGO_ENABLED=$(CGO_ENABLED) "$$($(SUPPLY) go-licenses)" report ./cmd/kpulse-proxy --stderrthreshold=ERROR --logtostderr=false --log_file=/dev/null \
		--ignore github.com/kpulse/kpulse-proxy --template deploy/packages/third-party.tmpl > '$(DIR)/licenses/THIRD-PARTY'
	cat "$$(go env GOROOT)/LICENSE" >> '$(DIR)/licenses/THIRD-PARTY'

sbom: # of PROGRAM, into OUT
	"$$($(SUPPLY) cyclonedx-gomod)" bin -json -std -noserial -notimestamp -version '$(VERSION)' -output '$(OUT)' '$(PROGRAM)'

# Variables for the scripts below, which build by `make build`.
release release-check image: export VERSION := $(VERSION)
release release-check image: export REVISION := $(REVISION)
release release-check image: export CREATED := $(CREATED)
release release-check image: export SOURCE_DATE_EPOCH := $(SOURCE_DATE_EPOCH)

image: ## Build the images kpulse-proxy:VERSION and kpulse-proxy:VERSION-nvml for ARCH (this machine's)
	deploy/image/build

release: ## Write archives, packages, bills of materials and their checksums to dist/ (minutes)
	deploy/packages/build

release-check: ## Build the release here and in another folder, and compare the checksums of both (minutes)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && set -ex && mkdir "$$dir/copy" && \
	git ls-files -z --cached --others --exclude-standard | tar --null --verbatim-files-from -T - -cf - | tar -xf - -C "$$dir/copy" && \
	DIST="$$dir/here" deploy/packages/build && \
	(cd "$$dir/copy" && umask 077 && TZ=Asia/Tokyo LC_ALL=C DIST="$$dir/there" deploy/packages/build) && \
	diff "$$dir/here/sha256sums.txt" "$$dir/there/sha256sums.txt" && cat "$$dir/here/sha256sums.txt"

run: ## Serve the embedded demo on localhost:9401
	go run ./cmd/kpulse-proxy --backend=replay

##@ Test

test: ## Run the quick tests (a minute and a half on two cores, once built)
	go test ./...
	@echo 'The slow tests of internal/slow/tests.tsv are left out: make e2e runs them; go test -v names each, and how to run it.'

race: ## Run all tests under the race detector, slow ones too; internal/e2e tests a program built with it
	@# rules/ is not part of the program: its tests run promtool. TestDay and TestAgainstReference take minutes with the detector.
	KPULSE_SLOW=1 go test -race -timeout 20m -skip '^(TestDay|TestAgainstReference)$$' $$(go list ./... | grep -v -e /internal/e2e$$ -e /internal/e2e/faults$$ -e /kpulse-proxy/rules)
	@$(RACED) KPULSE_SLOW=1 go test -count=1 -timeout 20m ./internal/e2e ./internal/e2e/faults

# The command that follows tests a program built with the race detector.
RACED := dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && set -x && \
	go build -race -o "$$dir/kpulse-proxy" ./cmd/kpulse-proxy && KPULSE_BINARY="$$dir/kpulse-proxy"

faults: ## Inflict the faults of testdata/FAULTS.md on the program, built with the race detector
	@$(RACED) KPULSE_SLOW=1 go test -count=1 -v ./internal/e2e/faults

# The duration of make soak; DURATION=20m:SEED replays the fleets and faults of a seed.
DURATION ?= 8h

soak: ## Run one program through fleets, reloads and faults for DURATION (8h), and check that its use of resources does not grow
	KPULSE_SOAK='$(DURATION)' go test -count=1 -v -timeout 0 -run '^TestSoak$$' ./internal/e2e/faults

SCRIPTS := $(filter-out %.md %.service %.timer,$(wildcard deploy/slurm/*)) deploy/image/build deploy/packages/build $(wildcard deploy/packages/deb/* deploy/packages/rpm/*)

lint: ## Check formatting, vet, shell scripts (if shellcheck is installed), and run golangci-lint (built from source, once)
	@test -z "$$(gofmt -l cmd internal rules)" || { gofmt -l cmd internal rules; echo 'run gofmt -w on these'; exit 1; }
	go vet ./...
	go tool -modfile=mixin/tools/go.mod golangci-lint run ./...
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); \
	else echo 'shellcheck is not installed; these are not checked: $(SCRIPTS)'; test -z "$$KPULSE_REQUIRE_SHELLCHECK"; fi

fuzz: ## Run each fuzz target that matches FUZZ (all) for FUZZTIME (60s), FUZZJOBS (2) at a time
	FUZZ='$(FUZZ)' FUZZTIME='$(FUZZTIME)' FUZZJOBS='$(FUZZJOBS)' .ci/fuzz

# The number of bodies of make differential; N=20:SEED replays the history of a seed.
N ?= 100000

differential: ## Compare all series of N (100000) random bodies of every dialect with the reference of internal/e2e (half an hour of CPU)
	KPULSE_DIFFERENTIAL='$(N)' go test -count=1 -v -timeout 12h -run '^TestDifferential$$' ./internal/e2e

##@ Test on real programs

# Prints each package, and the patterns of its tests as one regular expression.
SLOW := awk -F '\t' '/^[^\#]/{gsub(/\*/, ".*", $$2); all[$$1] = all[$$1] "|" $$2} END{for (p in all) print p, "^(" substr(all[p], 2) ")$$"}' internal/slow/tests.tsv

e2e: ## Run the slow tests, except those that match SKIP (minutes); a test whose program is missing says what it needs
	@all=$$($(SLOW)) && test -n "$$all" && echo "$$all" | while read -r package tests; do (set -x; go test -count=1 -timeout 20m -run "$$tests" -skip '$(SKIP)' "./$$package") || exit 1; done

OPERATOR := github.com/prometheus-operator/prometheus-operator

kubernetes: ## Build the servers of Kubernetes, helm, kubectl and the Prometheus operator into DIR, for KPULSE_KUBERNETES=DIR of internal/e2e (minutes)
	@test -n '$(DIR)' || { echo 'DIR is not set: make kubernetes DIR=/tmp/kubernetes'; exit 1; }
	go -C internal/e2e/kubernetes build -trimpath -ldflags '-s -w' -o '$(abspath $(DIR))/' tool
	go -C internal/e2e/helm build -trimpath -ldflags '-s -w' -o '$(abspath $(DIR))/' tool
	go -C internal/e2e/prometheusoperator build -trimpath -ldflags '-s -w' -o '$(abspath $(DIR))/' tool
	install -m 0644 -D -t '$(DIR)/crds' "$$(go -C internal/e2e/prometheusoperator list -m -f '{{.Dir}}' $(OPERATOR))"/example/prometheus-operator-crd/*.yaml

e2e-kube: ## Run the tests on a real Kubernetes and those of the chart; first builds what they need into DIR
	@$(MAKE) kubernetes DIR='$(DIR)'
	KPULSE_KUBERNETES='$(abspath $(DIR))' KPULSE_REQUIRE_KUBERNETES=1 go test -count=1 -timeout 20m -run 'Kubernetes|Chart|Kustomize|PrometheusOperator' ./internal/e2e

thanos: ## Build Thanos into DIR, for KPULSE_THANOS=DIR/thanos of the mixin's tests (minutes)
	@test -n '$(DIR)' || { echo 'DIR is not set: make thanos DIR=/tmp/thanos'; exit 1; }
	@# Without the tag, Thanos expects another layout of labels, and panics.
	go -C internal/e2e/thanos build -trimpath -tags slicelabels -ldflags '-s -w' -o '$(abspath $(DIR))/' tool

e2e-fleet: ## Run deploy/fleet: two clusters, Prometheus' agent, Thanos and Alertmanager (builds Thanos, needs prometheus and prometheus-alertmanager)
	@dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && set -x && $(MAKE) thanos DIR="$$dir" && \
	KPULSE_THANOS="$$dir/thanos" KPULSE_REQUIRE_THANOS=1 KPULSE_REQUIRE_PROMETHEUS=1 \
	go -C mixin test -count=1 -v -run '^TestFleetOnThanos$$' .

# The archive of a Debian root, for make e2e-image and make e2e-packages.
DEBIAN ?= /tmp/kpulse-debian.tar

debian: ## Build DEBIAN, the archive of a Debian root, for the two below (minutes)
	mmdebstrap --variant=apt --include=gcc,libc6-dev,make,ca-certificates,systemd \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		bookworm '$(DEBIAN)' http://deb.debian.org/debian

e2e-image: $(if $(wildcard $(DEBIAN)),,debian) ## Build the images with buildah and run them (as root)
	KPULSE_DEBIAN='$(DEBIAN)' KPULSE_REQUIRE_IMAGE=1 go test -count=1 -timeout 30m -run '^TestImage$$' ./internal/e2e

e2e-packages: $(if $(wildcard $(DEBIAN)),,debian) ## Check the packages of make release with apt, systemd and rpm (as root)
	KPULSE_DEBIAN='$(DEBIAN)' KPULSE_REQUIRE_PACKAGES=1 go test -count=1 -timeout 30m -run '^TestPackages$$' ./internal/e2e

e2e-compose: ## Check the files of deploy/compose with the loader of docker compose and promtool
	go -C deploy/compose vet ./...
	go -C deploy/compose test ./...

##@ Measure

bench: ## Run the benchmarks and print the targets of the design beside them
	go test -run '^$$' -bench . -benchmem ./internal/...
	KPULSE_BENCH=1 go test -count=1 -v -run '^TestTargets' -timeout 30m ./internal/e2e

report: ## Measure the targets of the design and how costs grow, and write testdata/bench/REPORT.md (ten minutes; on an idle machine)
	mkdir -p testdata/bench && KPULSE_BENCH=1 go test -count=1 -v -run '^TestTargets$$' -timeout 30m ./internal/e2e -update

# Sizes of the fleets; if empty, make fleet measures none and only updates the tables' columns.
NODES ?= 10,100,1000

fleet: build ## Measure what a fleet of NODES costs a Prometheus, and write the result to rules/README.md (needs prometheus; two hours, and 8 GB of memory for 1000 nodes)
	go run ./internal/e2e/fleet -proxy ./kpulse-proxy -nodes '$(NODES)' -write rules/README.md -sizes deploy/fleet/README.md -exporter rules/$(EXPORTER_RULES) $(addprefix rules/,$(RULES))

RULES := kpulse-node.rules.yml kpulse-fleet.rules.yml kpulse-boards.rules.yml kpulse-gangs.rules.yml kpulse-users.rules.yml
EXPORTER_RULES := twin/dcgm-exporter.rules.yml

rules-cost: ## Measure what the rules cost a Prometheus, and write the result to rules/README.md (minutes; 1000 nodes take 5 GB of memory)
	go -C rules/cost run . -write ../README.md -exporter ../$(EXPORTER_RULES) $(addprefix ../,$(RULES))

dashboards-cost: ## Measure how long a Prometheus takes for the dashboards, and write the result to rules/README.md (minutes; 1000 nodes take 5 GB of memory)
	go -C rules/cost run . -write ../README.md -dashboards ../../mixin/dashboards_out $(addprefix ../,$(RULES))

##@ Generate

screenshots: build ## Retake the pictures of the terminal dashboard (needs tmux)
	go run ./internal/tui/screenshots ./kpulse-proxy internal/tui/screenshots

rules: ## Write the rules that are generated from constants of the program
	go generate ./rules/...

.PHONY: help build bundle sbom image release release-check run screenshots test race faults soak lint fuzz differential bench report kubernetes thanos debian e2e e2e-kube e2e-fleet e2e-image e2e-packages e2e-compose rules rules-cost dashboards-cost fleet
