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
# cgo for another processor needs its C compiler; these are Debian's names.
CC_amd64    := x86_64-linux-gnu-gcc
CC_arm64    := aarch64-linux-gnu-gcc
FUZZTIME    ?= 60s
FUZZJOBS    ?= 2

help: ## Show this help
	@awk -F ':.*## ' '/^##@/{printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## /{printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build

# Without variables, the packages are compiled as by go run and go test, whose cache it shares. Releases trim paths.
build: ## Build ./kpulse-proxy; CGO_ENABLED=0 makes it static, without --backend=nvml
	$(if $(CGO_ENABLED),CGO_ENABLED=$(CGO_ENABLED)) $(if $(GOARCH),CC=$(CC_$(GOARCH))) go build $(BUILDFLAGS) -buildvcs=false -ldflags '$(LDFLAGS)' -o '$(OUT)' ./cmd/kpulse-proxy

# SUPPLY prints the path of a tool for the supply chain, built for this machine. What it reports depends on the target.
SUPPLY := env -u GOOS -u GOARCH -u CGO_ENABLED go tool -modfile=deploy/packages/supply/go.mod -n

bundle: CGO_ENABLED ?= 0
bundle: ## Build into DIR, with the licences of all linked modules
	@test -n '$(DIR)' || { echo 'DIR is not set: make bundle DIR=/tmp/bundle'; exit 1; }
	mkdir -p '$(DIR)/licenses'
	$(MAKE) build BUILDFLAGS=-trimpath CGO_ENABLED=$(CGO_ENABLED) OUT='$(DIR)/kpulse-proxy'
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

test: ## Run the quick tests
	go test -vet=off ./...
	@echo 'Slow tests, and those on real servers, are left out: go test -v names them, and make nightly runs them.'

# The packages that start goroutines.
CONCURRENT = $$(git grep -lE '^\s+go |\.Go\(' -- 'internal/*.go' ':!*_test.go' ':!internal/e2e/*' | xargs -n 1 dirname | sort -u | sed 's,^,./,')

race: ## Run the tests of the packages that start goroutines under the race detector
	go test -race -timeout 20m $(CONCURRENT)

# The command that follows tests a program built with the race detector.
RACED := dir=$$(mktemp -d) && trap 'rm -r "$$dir"' EXIT && set -x && \
	go build -race -o "$$dir/kpulse-proxy" ./cmd/kpulse-proxy && KPULSE_BINARY="$$dir/kpulse-proxy"

faults: ## Inflict the faults of internal/e2e on the program, built with the race detector
	@$(RACED) KPULSE_SLOW=1 go test -count=1 -v -timeout 30m -run '^TestFaults$$' ./internal/e2e

# The duration of make soak; DURATION=20m:SEED replays the fleets and faults of a seed.
DURATION ?= 8h

soak: ## Run one program through fleets, reloads and faults for DURATION (8h), and check that its use of resources does not grow
	KPULSE_SOAK='$(DURATION)' go test -count=1 -v -timeout 0 -run '^TestSoak$$' ./internal/e2e

vet: ## Check formatting, vet, and run staticcheck
	@test -z "$$(gofmt -l cmd internal rules mixin deploy)" || { gofmt -l cmd internal rules mixin deploy; echo 'run gofmt -w on these'; exit 1; }
	go vet ./...
	go tool -modfile=mixin/tools/go.mod staticcheck ./...

SCRIPTS := $(filter-out %.md %.service %.timer,$(wildcard deploy/slurm/*)) deploy/image/build deploy/kustomize/sidecar/apply $(addprefix deploy/packages/,build chart formula tarball) $(wildcard deploy/packages/deb/* deploy/packages/rpm/*)

lint: vet ## vet, and golangci-lint and shellcheck (the first run builds golangci-lint, for minutes)
	go tool -modfile=mixin/tools/go.mod golangci-lint run ./...
	shellcheck $(SCRIPTS)

fuzz: ## Run each fuzz target that matches FUZZ (all) for FUZZTIME (60s), FUZZJOBS (2) at a time
	FUZZ='$(FUZZ)' FUZZTIME='$(FUZZTIME)' FUZZJOBS='$(FUZZJOBS)' .ci/fuzz


##@ Test on real programs

# What these tests build is kept in CACHE, once for each version of its module.
CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kpulse-proxy
sums = $(shell cat $(addsuffix /go.sum,$(addprefix internal/e2e/,$(1))) 2>/dev/null | sha256sum | cut -c 1-12)
KUBERNETES := $(CACHE)/kubernetes-$(call sums,kubernetes helm helm4 prometheusoperator)
THANOS := $(CACHE)/thanos-$(call sums,thanos)
DEBIAN ?= $(CACHE)/debian.tar
OPERATOR := github.com/prometheus-operator/prometheus-operator

nightly: ## Run all that is too slow for CI: every test with its servers, faults, a soak, fuzzing (hours)
	.ci/nightly

slow: ## Run all tests of the program's module, slow ones too; those whose program is missing say what they need
	KPULSE_SLOW=1 go test -count=1 -timeout 40m -skip '^(TestFaults|TestSoak)$$' ./...

kubernetes: $(KUBERNETES) ## Build the servers of Kubernetes, Helm 3 and 4, and kubectl (minutes)

# Without it the API server calls itself 0.0.0, and helm installs nothing.
KUBERNETES_VERSION = $(shell sed -n 's,.*k8s.io/kubernetes \(v[0-9.]*\).*,\1,p' internal/e2e/kubernetes/go.mod)

$(KUBERNETES):
	for module in kubernetes helm; do go -C internal/e2e/$$module build -trimpath -ldflags '-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)' -o '$@.part/' tool || exit 1; done
	go -C internal/e2e/helm4 build -trimpath -ldflags '-s -w' -o '$@.part/helm4' tool
	go -C internal/e2e/prometheusoperator mod download $(OPERATOR)
	install -m 0644 -D -t '$@.part/crds' "$$(go -C internal/e2e/prometheusoperator list -m -f '{{.Dir}}' $(OPERATOR))"/example/prometheus-operator-crd/*.yaml
	mv '$@.part' '$@'

e2e-kube: $(KUBERNETES) ## Run the tests on a real Kubernetes, and those of the chart (needs etcd)
	KPULSE_KUBERNETES='$(KUBERNETES)' KPULSE_REQUIRE_KUBERNETES=1 go test -count=1 -timeout 20m -run 'Kubernetes|Chart|Kustomize' ./internal/e2e

thanos: $(THANOS) ## Build Thanos (minutes)

# Without the tag, Thanos expects another layout of labels, and panics.
$(THANOS):
	go -C internal/e2e/thanos build -trimpath -tags slicelabels -ldflags '-s -w' -o '$@.part/' tool
	mv '$@.part' '$@'

e2e-fleet: $(THANOS) ## Run deploy/fleet: two clusters, Prometheus' agent, Thanos and Alertmanager (needs prometheus and prometheus-alertmanager); OLD=FILE replaces one proxy
	KPULSE_OLD='$(abspath $(OLD))' KPULSE_THANOS='$(THANOS)/thanos' KPULSE_REQUIRE_THANOS=1 KPULSE_REQUIRE_PROMETHEUS=1 go -C mixin test -count=1 -v -run '^TestFleetOnThanos$$' .

debian: $(DEBIAN) ## Build the archive of a Debian root, for the two below (minutes; needs mmdebstrap)

$(DEBIAN):
	mkdir -p '$(@D)'
	mmdebstrap --variant=apt --include=gcc,libc6-dev,make,ca-certificates,systemd \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		bookworm '$@' http://deb.debian.org/debian

e2e-image: $(DEBIAN) ## Build the images with buildah and run them (as root)
	KPULSE_DEBIAN='$(DEBIAN)' KPULSE_REQUIRE_IMAGE=1 go test -count=1 -timeout 30m -run '^TestImage$$' ./internal/e2e

e2e-packages: $(DEBIAN) ## Check the packages of make release with apt, systemd and rpm (as root)
	KPULSE_DEBIAN='$(DEBIAN)' KPULSE_REQUIRE_PACKAGES=1 go test -count=1 -timeout 30m -run '^TestPackages$$' ./internal/e2e

e2e-compose: ## Check the files of deploy/compose with the loader of docker compose and promtool
	go -C deploy/compose vet ./...
	go -C deploy/compose test ./...

##@ Measure

bench: ## Run the benchmarks, and measure the targets of the design; OLD=FILE measures an older program beside, ROWS='XL.*gzip' only some
	go test -run '^$$' -bench . -benchmem ./internal/...
	KPULSE_BENCH='$(or $(ROWS),.)' KPULSE_OLD='$(abspath $(OLD))' go test -count=1 -v -run '^TestTargets' -timeout 60m ./internal/e2e

report: ## Measure the targets of the design, and write testdata/bench/REPORT.md (five minutes; on an idle machine)
	KPULSE_BENCH=. KPULSE_OLD='$(abspath $(OLD))' go test -count=1 -v -run '^TestTargets$$' -timeout 60m ./internal/e2e -update

# Sizes of the fleets of make fleet, in nodes of 8 GPUs.
NODES ?= 10,200,1000

fleet: ## Measure what fleets of NODES cost a Prometheus, write it to rules/README.md, and time the dashboards (needs prometheus, Node.js; half an hour each)
	KPULSE_COST='$(NODES)' KPULSE_REQUIRE_PROMETHEUS=1 go -C mixin test -count=1 -v -timeout 0 -parallel 6 -run '^TestCost$$' . -update
	$(MAKE) -C mixin fleet

##@ Generate

# A chart with links would lose their files where Flux, or a registry of sources, drops them.
CHART := deploy/helm/kpulse-proxy
chart: ## Copy the files of the mixin and the manifests that the chart contains into it
	rm -rf $(CHART)/files && mkdir -p $(CHART)/files/dashboards
	install -m 0644 mixin/dashboards_out/*.json $(CHART)/files/dashboards/
	install -m 0644 mixin/prometheus_rules.yaml $(CHART)/files/rules.yaml
	install -m 0644 mixin/prometheus_alerts.yaml $(CHART)/files/alerts.yaml
	install -m 0644 deploy/kubernetes/rbac.yaml $(CHART)/values.yaml $(CHART)/files/

screenshots: ## Redraw the pictures of the terminal dashboard
	go test ./internal/tui/view -run TestPictures -update

.PHONY: help build bundle sbom image release release-check run test race faults soak vet lint fuzz nightly slow kubernetes e2e-kube \
	thanos e2e-fleet debian e2e-image e2e-packages e2e-compose bench report fleet chart screenshots
