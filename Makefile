# The unreleased version. Images and bundle/ are named after it.
VERSION ?= 1.1.0
# The bundle's createdAt, and @ with the digest of the operator's image if it is known. "make release" sets them.
RELEASED ?= 2026-11-22T17:49:20Z
DIGEST ?=

IMAGE_TAG_BASE ?= ghcr.io/memcached-operator/memcached-operator
IMG ?= $(IMAGE_TAG_BASE):v$(VERSION)
# As the bundle names it.
BUNDLED_IMG ?= $(IMG)$(DIGEST)
BUNDLE_IMG ?= $(IMAGE_TAG_BASE)-bundle:v$(VERSION)
# It contains all releases, so that clusters that poll it find the next one.
CATALOG_IMG ?= $(IMAGE_TAG_BASE)-catalog:latest
SCORECARD_IMG ?= $(IMAGE_TAG_BASE)-scorecard:v$(VERSION)

CHANNELS ?= stable-v1,candidate-v1
DEFAULT_CHANNEL ?= stable-v1
# Labels of the scorecard's tests to run; empty means all.
SELECTOR ?= suite=memcached
# The base of the catalog's image. "scratch" omits opm, which OLM provides then.
OPM_IMAGE ?= quay.io/operator-framework/opm:v1.73.0

CONTAINER_TOOL ?= docker
PLATFORMS ?= linux/amd64,linux/arm64
KUBECTL ?= kubectl
ignore-not-found ?= false
# How images come to the cluster in KUBECONFIG: kind or k3d import them, push pushes them to IMAGE_TAG_BASE. Empty: the
# cluster can pull them.
LOAD ?=
# The versions of memcached that are tested on the cluster in KUBECONFIG.
MEMCACHED_VERSIONS ?= 1.6.18 1.6.38 1.6.45
# What "make test-tools-build" builds besides an API server and memcached.
PREPARED ?= peers
ARGS ?=
FUZZTIME ?= 20s
SOAK ?= 10m
FROM ?= 1

# What the prose check reads: files or directories of Markdown and Go.
PROSE ?= README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs config/manifests/bases api cmd controllers internal hack test main.go

# One flavour for tests, tools, images and the local cluster: what is compiled for one of them serves the others.
# hack/cluster/build.go has the same flags. "go test" vets nothing, since test-vet and test-lint vet all.
export CGO_ENABLED := 0
ifeq ($(findstring -trimpath,$(GOFLAGS)),)
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -buildvcs=false -gcflags=all=-dwarf=false -vet=off)
endif

# Every module that is formatted, vetted and linted.
MODULES = . hack/cluster hack/catalog test bench
# Files that "make generate manifests" writes. Tests compare the bundle, the catalog and the generated documents.
GENERATED = api config/crd/bases config/rbac/role.yaml

CLUSTER = $(CURDIR)/bin/cluster
CONTROLLER_GEN = go tool -modfile=hack/tools/go.mod controller-gen
VALE = CGO_ENABLED=1 go tool -modfile=hack/tools/prose/go.mod vale
HUGO = go tool -modfile=hack/tools/site/go.mod hugo
GOLANGCI_LINT = go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint
CI_TOOL = go tool -modfile=$(CURDIR)/hack/tools/ci/go.mod
KUSTOMIZE = go run ./hack/kustomize
STATIC_BUILD = go build -ldflags '-s -w -X main.version=$(VERSION)'
# HTTP/2 needs TLS, which the agent's HTTP servers don't have, and 0.5 MB of each shard's memory.
AGENT_TAGS = nethttpomithttp2

# After eval "$(make -s env)", KUBECONFIG names the local cluster, which make still starts and loads images into.
ifneq ($(MEMCACHED_OPERATOR_CLUSTER),)
ifeq ($(KUBECONFIG),$(shell $(MEMCACHED_OPERATOR_CLUSTER) kubeconfig))
KUBECONFIG :=
endif
endif

# $(call with,SETS) builds what tests need and adds it to the environment of a recipe: an API server (api), memcached
# (process), programs that use it (peers), or the local cluster with kubectl (cluster). $(TOOLS) is the cluster, and $(ON_CLUSTER) too, unless
# KUBECONFIG names another one. Two steps, so that a recipe stops when the first fails.
with = exports="$$($(CLUSTER) env $(1))" && eval "$$exports" && PATH="$$PATH:$$KUBEBUILDER_ASSETS" &&
TOOLS = $(call with,cluster)
ON_CLUSTER = $(if $(KUBECONFIG),,$(TOOLS))

# The name of the ClusterServiceVersion, if OLM installed the operator.
OLM_OWNER = $(KUBECTL) -n memcached-operator-system get deployment memcached-operator-controller-manager --ignore-not-found -o jsonpath='{.metadata.labels.olm\.owner}'

# The operator's image on the cluster. If this Makefile loads it, its tag ends with a hash of its sources, since nodes don't
# pull an image again. The hash is computed once, so that saving a file does not change the name between build and use.
SOURCES = Dockerfile .dockerignore go.mod go.sum main.go api cmd controllers internal
hash = find $(1) -type f $(2) | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-12
no_tests = ! -name '*_test.go'
pulled = $(and $(KUBECONFIG),$(if $(LOAD),,pulled))
USED_IMG = $(eval USED_IMG := $(IMG)$(if $(pulled),,-$(shell $(call hash,$(SOURCES),$(no_tests)))))$(USED_IMG)

# The scorecard's image, with such a hash.
SCORECARD_SOURCES = go.mod go.sum api internal test/go.mod test/go.sum test/internal test/scorecard
USED_SCORECARD_IMG = $(eval USED_SCORECARD_IMG := $(SCORECARD_IMG)$(if $(KUBECONFIG),,-$(shell $(call hash,$(SCORECARD_SOURCES),$(no_tests)))))$(USED_SCORECARD_IMG)

# The images in which the tests and the demo's client run.
E2E_SOURCES = $(SOURCES) config/crd/bases hack/cluster/notmemcached hack/cluster/s3 test/go.mod test/go.sum test/internal test/sim test/e2e
E2E_IMG = $(eval E2E_IMG := $(IMAGE_TAG_BASE):e2e-$(shell $(call hash,$(E2E_SOURCES))))$(E2E_IMG)
DEMO_SOURCES = go.mod go.sum api controllers internal config/samples test/go.mod test/go.sum test/internal bench
DEMO_IMG = $(eval DEMO_IMG := $(IMAGE_TAG_BASE):demo-$(shell $(call hash,$(DEMO_SOURCES),$(no_tests))))$(DEMO_IMG)

# $(call tier,NAME,COMMAND) runs a tier of the tests, and adds its seconds to the table that $(call run,TIERS) prints.
TIMES = dist/test-times
define tier
@echo '==> $(1)'; began=$$(date +%s); { $(2); } && mkdir -p dist && printf '%-16s %5d s\n' '$(1)' $$(($$(date +%s) - began)) >>$(TIMES)
endef
define run
@mkdir -p dist && rm -f $(TIMES); began=$$(date +%s); failed=; \
for tier in $(1); do $(MAKE) --no-print-directory test-$$tier || failed="$$failed test-$$tier"; done; \
if [ -n "$$failed" ]; then printf '\nFailed:%s\n' "$$failed"; exit 1; fi; printf '%-16s %5d s\n' all $$(($$(date +%s) - began)) >>$(TIMES) && \
printf '\nAll tests passed ($(TIMES)):\n\n' && cat $(TIMES)
endef

# $(call build,IMAGE,NAME,DOCKERFILE,FLAGS,LOCAL FLAGS) and $(call push,IMAGE,NAME) use the container daemon. Without one
# they build the same Dockerfile into dist/NAME.tar and push that. --local-base builds without access to a registry.
HAS_DAEMON = $(CONTAINER_TOOL) info >/dev/null 2>&1
LOCAL_BUILD = $(CLUSTER) image build -t $(1) -o dist/$(2).tar -f $(3) $(4) $(5) .
define build
	@if $(HAS_DAEMON); then $(CONTAINER_TOOL) build -f $(3) $(4) -t $(1) .; else \
	echo '$(CONTAINER_TOOL) has no daemon: building $(1) into dist/$(2).tar without one' && $(LOCAL_BUILD); fi
endef
define push
	@if $(HAS_DAEMON); then $(CONTAINER_TOOL) push $(1); else $(CLUSTER) image push dist/$(2).tar $(1); fi
endef

.DEFAULT_GOAL = help
ifndef PARALLEL
.NOTPARALLEL:
endif
.PHONY: FORCE
FORCE:

##@ General

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@printf '\nUses the cluster in KUBECONFIG, or creates a local one on demand.\n'

.PHONY: clean
clean: ## Remove bin/ and dist/; the local cluster and its cache stay.
	rm -rf bin dist

##@ Development

.PHONY: generate
generate: ## Generate deep copies and apply configurations from api/.
	$(CONTROLLER_GEN) object applyconfiguration paths=./api/...

.PHONY: manifests
manifests: ## Generate the CRDs from api/, and the operator's role, rules and dashboards from controllers/.
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=config/crd/bases
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./controllers/... output:rbac:dir=config/rbac
	go run ./hack/monitoring

.PHONY: docs
docs: ## Generate docs/api.md, docs/troubleshooting.md and docs/monitoring-metrics.md.
	go run ./hack/docs

.PHONY: docs-site
docs-site: ## Build the site of docs/ in dist/site; the first build takes three minutes.
	rm -rf dist/site
	$(HUGO) --source hack/site --destination $(CURDIR)/dist/site --panicOnWarning

.PHONY: fmt
fmt: ## Format the Go code.
	@for module in $(MODULES); do go -C $$module fmt ./... || exit 1; done

.PHONY: vet
vet: ## Run go vet.
	@for module in $(MODULES); do echo "go vet $$module" && go -C $$module vet ./... || exit 1; done

.PHONY: lint
lint: ## Run golangci-lint; its first build takes minutes.
	@for module in $(MODULES); do echo "golangci-lint $$module" && (cd $$module && $(GOLANGCI_LINT) run) || exit 1; done

.PHONY: prose
prose: ## Check the wording of PROSE; the first build takes two minutes and needs a C compiler.
	@command -v cc >/dev/null || if [ "$$(id -u)" = 0 ]; then echo 'installing a C compiler'; apt-get update -q && apt-get install -qy --no-install-recommends gcc libc6-dev; else \
	echo 'the prose check needs a C compiler: run "apt-get install gcc libc6-dev" as root'; exit 1; fi >&2
	@$(VALE) test hack/vale
	@$(VALE) $(addprefix ./,$(PROSE))

##@ Tests

.PHONY: test
test: ## Test without root and without a cluster; the first run builds an API server.
	$(call run,first local)

.PHONY: test-all
test-all: $(CLUSTER) ## Run every test; needs root for the local cluster.
	@if [ -z "$(KUBECONFIG)" ] && $(CLUSTER) status | grep -q "does not run"; then trap '$(CLUSTER) down' EXIT; trap 'exit 1' INT TERM; fi; \
	$(MAKE) --no-print-directory test-every

.PHONY: test-every
test-every:
	$(call run,tools-build code cluster scorecard olmv1)

# What downloads runs beside what compiles, and what waits beside what computes.
.PHONY: test-first test-static test-local test-code test-runs test-checks test-cluster test-installed test-beside
test-first:
	@$(MAKE) --no-print-directory -j2 PARALLEL=1 PREPARED= test-static test-tools-build
test-static:
	@$(MAKE) --no-print-directory -k PARALLEL= test-generated test-vet test-prose
test-local:
	@$(MAKE) --no-print-directory -j3 PARALLEL=1 PROCESSES='./process ./checker' test-unit test-process test-quick-sim

test-code:
	@$(MAKE) --no-print-directory -k -j2 PARALLEL=1 test-runs test-checks
test-runs:
	@$(MAKE) --no-print-directory -k PARALLEL= test-process test-sim
test-checks:
	@$(MAKE) --no-print-directory -k PARALLEL= test-generated test-vet test-prose test-race test-unraced

# The tests on the cluster come first; what else has to be computed takes the time in which they wait.
test-cluster:
	@$(MAKE) --no-print-directory -k -j2 PARALLEL=1 test-installed test-beside
test-installed:
	@$(MAKE) --no-print-directory PARALLEL= test-e2e
test-beside:
	@nice -n 19 $(MAKE) --no-print-directory -k PARALLEL= test-tools test-lint

# In a copy, so that a tree that fails is left as it is.
.PHONY: test-generated
test-generated: ## Check that generated files are up to date.
	$(call tier,generated,copy="$$(mktemp -d)" && trap 'rm -rf "$$copy"' EXIT && \
	git ls-files -zco --exclude-standard --deduplicate | tar -cf - --null --ignore-failed-read -T - 2>/dev/null | tar -xf - -C "$$copy" && \
	$(MAKE) --no-print-directory -s -C "$$copy" generate manifests && \
	for path in $(GENERATED); do \
		diff -r "$$path" "$$copy/$$path" || { echo 'run "make generate manifests bundle catalog" and commit what changes'; exit 1; }; \
	done)

# The other modules are vetted by test-lint.
.PHONY: test-vet
test-vet:
	$(call tier,vet and format,$(MAKE) --no-print-directory vet MODULES='. test bench' && \
	unformatted="$$(git ls-files -co --exclude-standard '*.go' | xargs ls 2>/dev/null | xargs gofmt -l)" && \
	if [ -n "$$unformatted" ]; then echo 'run "make fmt": the format differs in'; echo "$$unformatted"; exit 1; fi)

.PHONY: test-lint
test-lint:
	$(call tier,lint,$(MAKE) --no-print-directory lint test-modules test-workflows test-commits docs-site)

.PHONY: test-prose
test-prose:
	$(call tier,prose,$(MAKE) --no-print-directory prose)

.PHONY: test-tools-build
test-tools-build: $(CLUSTER)
	$(call tier,build of tools,$(CLUSTER) env api process $(PREPARED) >/dev/null)

.PHONY: test-unit
test-unit: $(CLUSTER) ## Test the operator's module, also with an API server.
	$(call tier,unit and API,$(call with,api) go test ./...)

# The packages with tests of memcached processes: peers also needs clients, an S3 server, Prometheus and memcached_exporter.
PROCESSES = ./process ./peers ./facts ./checker
# They mount volumes and run agents under other users, for which a user other than root needs a namespace.
.PHONY: test-process
test-process: $(CLUSTER) ## Test agent and protocol with memcached processes.
	$(call tier,processes,$(call with,process $(if $(findstring peers,$(PROCESSES)),peers)) setsid -w go -C test test -p 1 -count=1 -timeout 40m $(if $(filter-out 0,$(shell id -u)),-exec 'unshare --user --map-root-user --map-auto --mount') $(PROCESSES))

.PHONY: test-quick-sim
test-quick-sim: $(CLUSTER) ## Test the operator in a simulated cluster with failures, ten seeds.
	$(call tier,quick simulation,$(call with,api) GOGC=400 go -C test test -count=1 ./sim -run TestInvariantsHold -seeds 10)

.PHONY: test-sim
test-sim: $(CLUSTER) ## Test the operator in a simulated cluster with failures.
	$(call tier,simulation,$(call with,api) GOGC=400 go -C test test -count=1 -timeout 40m ./sim)

# What the race detector tests, without the tests that enumerate inputs of a pure function or measure memory, and without those
# that let the Memcached controller reconcile once: they have one goroutine, and with the race detector they take ten times as
# long, or as much. The simulation races the whole controller.
RACED = $$(go list ./api/... ./internal/... ./controllers/... | grep -v '/controllers/memcached$$')
UNRACED = TestInvariantsHoldForEveryObservation|TestWindowIsOpenAfterTheWait|TestEveryStateOfTwoShards|TestInvariantsHoldInRandomSequences|TestManifestOfAnySizeFitsIntoMemoryOfJob
.PHONY: test-race
test-race: $(CLUSTER) ## Test with the race detector, in a random order; needs a C compiler.
	$(call tier,race,export CGO_ENABLED=1; $(call with,api) go test -race -shuffle=on -timeout 30m -skip '$(UNRACED)' $(RACED) && \
	go -C test test -race -shuffle=on -count=1 ./sim -run TestInvariantsHold -seeds 3)

# The unit tests that test-race omits.
.PHONY: test-unraced
test-unraced: $(CLUSTER)
	$(call tier,unit and API,$(call with,api) go test . ./cmd/... ./docs/... ./controllers/memcached && go test -run '$(UNRACED)' $(RACED))

.PHONY: test-tools
test-tools: $(CLUSTER) ## Test the local cluster's program and the other tools.
	@# -count=1: Go's cache ignores changes of files outside of the module.
	$(call tier,tools,go test ./hack/... && for module in hack/cluster hack/catalog; do go -C $$module test -count=1 ./... || exit 1; done; \
	$(call with,api) go -C test test -count=1 ./internal/... ./scorecard/... ./tenants && go -C bench test -count=1 ./...)

.PHONY: test-e2e
test-e2e: $(if $(KUBECONFIG),test-pod,test-host) ## Test on a cluster.

.PHONY: test-host
test-host: olm not-by-olm deploy-as-generated e2e-image
	$(call tier,cluster,$(call with,cluster api process peers) export IMG=$(USED_IMG) MEMCACHED_VERSIONS="$$(ls "$$MEMCACHED_DIR" | xargs)" AUDIT_SINCE="$$(date -u +%FT%TZ)" && \
	$(if $(ARGS),,go -C test run ./inpod --image $(E2E_IMG) --env TEST_IMAGE=$(E2E_IMG) --env "MEMCACHED_VERSIONS=$$MEMCACHED_VERSIONS" /e2e.test -test.v -test.timeout=60m && )\
	go -C test test -count=1 -timeout 60m -v ./host $(ARGS)$(if $(ARGS),, && go -C test test -count=1 -v ./rights))

.PHONY: test-pod
test-pod: deploy-as-generated e2e-image ## Test in a pod of the cluster; ARGS are flags such as -test.run=Backup.
	$(call tier,cluster,$(ON_CLUSTER) go -C test run ./inpod --image $(E2E_IMG) --env TEST_IMAGE=$(E2E_IMG) --env "MEMCACHED_VERSIONS=$(MEMCACHED_VERSIONS)" /e2e.test -test.v -test.timeout=60m $(ARGS))

.PHONY: test-scorecard
test-scorecard: ## Run our custom scorecard tests.
	$(call tier,scorecard,$(MAKE) --no-print-directory scorecard)

.PHONY: test-olmv1
test-olmv1: not-by-olm image olmv1 ## Test with OLM v1 on the local cluster. OLM v1 deletes every Memcached, so there must be none.
	$(call tier,OLM v1,$(TOOLS) IMG=$(USED_IMG) go -C test test -count=1 -timeout 10m -v ./olmv1/...)

.PHONY: soak
soak: ## Run the simulation with seeds from FROM on for SOAK, 500 steps each.
	@$(call with,api) GOGC=400 go -C test test -count=1 -timeout 0 -v ./sim -run 'TestInvariantsHold' -seeds 0 -from $(FROM) -for $(SOAK)

.PHONY: mutants
mutants: ## Test the unit tests with mutants of the code and write docs/mutants.md; takes about 50 min.
	@go -C hack/tools/mutants run . $(ARGS)

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME.
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' api cmd controllers internal | while IFS=: read -r file name; do \
		go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) "./$${file%/*}" || exit 1; done

.PHONY: test-modules
test-modules: ## Check go.mod and go.sum of all modules.
	@for module in $$(git ls-files '*go.mod'); do echo "go mod tidy $${module%go.mod}" && go -C "./$${module%go.mod}" mod tidy -diff || exit 1; done

.PHONY: test-workflows
test-workflows: ## Check the GitHub workflows.
	@$(CI_TOOL) actionlint

.PHONY: test-commits
test-commits: ## Check the subjects of the commits since release 1.0.0.
	@go run ./hack/commits

.PHONY: test-vulnerabilities
test-vulnerabilities: ## Check all modules for known vulnerabilities of the code that they call; needs the internet.
	@for module in $(MODULES); do echo "govulncheck $$module" && (cd $$module && $(CI_TOOL) govulncheck ./...) || exit 1; done

##@ Build

.PHONY: build
build: ## Build the operator, the agent and the backup program.
	$(STATIC_BUILD) -o bin/manager .
	$(STATIC_BUILD) -tags $(AGENT_TAGS) -o bin/agent ./cmd/agent
	$(STATIC_BUILD) -o bin/snapshot ./cmd/snapshot

.PHONY: docker-build
docker-build: $(CLUSTER) ## Build the operator's image; without a container daemon, into dist/.
	$(call build,$(IMG),operator,Dockerfile,--build-arg VERSION=$(VERSION),--local-base)

.PHONY: docker-push
docker-push: $(CLUSTER) ## Push the operator's image.
	$(call push,$(IMG),operator)

.PHONY: docker-buildx
docker-buildx: ## Build and push the operator's image for all PLATFORMS.
	$(CONTAINER_TOOL) buildx build --push --build-arg VERSION=$(VERSION) --platform $(PLATFORMS) -t $(IMG) .

##@ Operator

.PHONY: run
run: manifests generate image ## Run the operator in this shell with the flags in ARGS.
	go build -o bin/manager .
	@$(ON_CLUSTER) RELATED_IMAGE_AGENT="$${RELATED_IMAGE_AGENT:-$(USED_IMG)}" exec bin/manager $(ARGS)

.PHONY: install
install: manifests ready ## Install the CRDs.
	@$(ON_CLUSTER) $(KUSTOMIZE) config/crd | $(KUBECTL) apply --server-side --force-conflicts -f -

.PHONY: uninstall
uninstall: ready ## Delete the CRDs and with them every Memcached.
	@$(ON_CLUSTER) $(KUSTOMIZE) config/crd | $(KUBECTL) delete --ignore-not-found=$(ignore-not-found) -f -

.PHONY: deploy
deploy: manifests deploy-as-generated ## Run the operator in the cluster.

.PHONY: deploy-as-generated
deploy-as-generated: image
	@$(ON_CLUSTER) owner="$$($(OLM_OWNER))" && if [ -n "$$owner" ]; then echo "the operator is already installed by OLM ($$owner); run \"make undeploy\" first"; exit 1; fi
	@$(ON_CLUSTER) $(KUSTOMIZE) --image controller=$(USED_IMG) config/default | $(KUBECTL) apply --server-side --force-conflicts -f -
	@$(ON_CLUSTER) $(KUBECTL) -n memcached-operator-system rollout status deployment/memcached-operator-controller-manager --timeout=2m

.PHONY: undeploy
undeploy: ready ## Delete the operator, also one that OLM installed; Memcacheds keep serving (see uninstall).
	@$(ON_CLUSTER) ignored=$(ignore-not-found) && \
	if [ -n "$$($(OLM_OWNER))" ]; then ignored=true && $(KUBECTL) -n memcached-operator-system delete --all subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com; fi && \
	$(KUSTOMIZE) --without CustomResourceDefinition config/default | $(KUBECTL) delete --ignore-not-found=$$ignored -f -

# Deletes an operator that OLM installed.
.PHONY: not-by-olm
not-by-olm: ready
	@$(ON_CLUSTER) if [ -n "$$($(OLM_OWNER))" ]; then $(MAKE) --no-print-directory undeploy; fi

##@ OLM

.PHONY: bundle
bundle: manifests ## Generate bundle/, bundle.Dockerfile and the installer in config/samples/olmv1, and validate the bundle.
	go run ./hack/bundle generate --version $(VERSION) --image $(BUNDLED_IMG) --scorecard-image $(SCORECARD_IMG) --created-at $(RELEASED) --channels $(CHANNELS) --default-channel $(DEFAULT_CHANNEL)
	@$(MAKE) --no-print-directory validate

.PHONY: validate
validate: ## Validate bundle/ with the checks of OperatorHub.
	go run ./hack/bundle validate

.PHONY: bundle-build
bundle-build: $(CLUSTER) ## Build the bundle's image; without a container daemon, into dist/.
	$(call build,$(BUNDLE_IMG),bundle,bundle.Dockerfile,)

.PHONY: bundle-push
bundle-push: $(CLUSTER) ## Push the bundle's image.
	$(call push,$(BUNDLE_IMG),bundle)

.PHONY: catalog-add
catalog-add: # Copy bundle/ to catalog/releases.
	go -C hack/catalog run . add

.PHONY: catalog
catalog: ## Render catalog/configs from catalog/releases, and validate it.
	go -C hack/catalog run . render $(IMAGE_TAG_BASE)-bundle

.PHONY: catalog-build
catalog-build: $(CLUSTER) ## Build the catalog's image; without a container daemon, into dist/.
	$(call build,$(CATALOG_IMG),catalog,catalog/Dockerfile,--build-arg OPM_IMAGE=$(OPM_IMAGE))

.PHONY: catalog-push
catalog-push: $(CLUSTER) ## Push the catalog's image.
	$(call push,$(CATALOG_IMG),catalog)

.PHONY: scorecard
scorecard: scorecard-image operator ## Run the scorecard's tests that SELECTOR names with the installed operator.
	@$(ON_CLUSTER) rights="$$($(KUSTOMIZE) config/scorecard/rbac)" && \
	trap 'echo "$$rights" | $(KUBECTL) delete --ignore-not-found -f -' EXIT && trap 'exit 1' INT TERM && \
	echo "$$rights" | $(KUBECTL) apply --server-side --force-conflicts -f - && \
	go -C test run ./scorecard/run --bundle $(CURDIR)/bundle --namespace memcached-scorecard --service-account memcached-scorecard --image $(USED_SCORECARD_IMG) --selector '$(SELECTOR)'

.PHONY: scorecard-build
scorecard-build: $(CLUSTER) ## Build the scorecard's image; without a container daemon, into dist/.
	$(call build,$(SCORECARD_IMG),scorecard,test/scorecard/Dockerfile,)

.PHONY: scorecard-push
scorecard-push: $(CLUSTER) ## Push the scorecard's image.
	$(call push,$(SCORECARD_IMG),scorecard)

.PHONY: release
release: ## Prepare release VERSION (everything except pushing), with IMAGE_DIGEST of the operator if it is pushed already.
	@go run ./hack/release $(VERSION) $(IMAGE_DIGEST)

.PHONY: release-images
release-images: docker-build bundle-build catalog-build scorecard-build

##@ Local cluster

.PHONY: cluster-up
cluster-up: $(CLUSTER) ## Start the local cluster: real Kubernetes on this machine; needs root.
	@$(CLUSTER) up

.PHONY: cluster-down
cluster-down: $(CLUSTER) ## Stop the local cluster.
	@$(CLUSTER) down

.PHONY: cluster-wipe
cluster-wipe: $(CLUSTER) ## Stop the local cluster and delete its data; builds stay.
	@$(CLUSTER) down --wipe

.PHONY: env
env: $(CLUSTER) ## Print the environment of the tests, for: eval "$(make -s env)"
	@$(CLUSTER) env

.PHONY: demo
demo: $(if $(KUBECONFIG),deploy-as-generated,image olm) demo-image ## Show what the operator does.
	@$(ON_CLUSTER) IMG=$(USED_IMG) DEMO_IMAGE=$(DEMO_IMG) go -C bench run . demo

.PHONY: bench-upgrade
bench-upgrade: not-by-olm deploy-as-generated ## Measure the effect of an upgrade of memcached on a client, and write docs/bench-upgrade.*; takes 45 min.
	@$(ON_CLUSTER) go -C bench run . upgrade $(ARGS)

.PHONY: bench-handover
bench-handover: not-by-olm deploy-as-generated ## Measure the effect of the eviction of all pods on a client, and write docs/bench-handover.*.
	@$(ON_CLUSTER) go -C bench run . handover $(ARGS)

.PHONY: bench-backup
bench-backup: not-by-olm deploy-as-generated ## Measure the cost of a backup and a restore, and write docs/bench-backup.md; takes 4 min.
	@$(ON_CLUSTER) go -C bench run . backup $(ARGS)

.PHONY: bench-memory
bench-memory: $(CLUSTER) ## Measure how many items fit into a shard and what it uses, and write docs/bench-memory.md; needs root and no cluster.
	@$(call with,process) go -C bench run . memory $(ARGS)

.PHONY: bench-scrapes bench-tls bench-snapshot
bench-scrapes: ## Measure what scrapes of the shards' metrics cost; needs root and no cluster.
bench-tls: ## Compare latencies, requests a second and memory of clients with and without TLS; needs root and no cluster.
bench-snapshot: ## Compare a save and a load of a snapshot with a bare copy; needs root and no cluster.
bench-scrapes bench-tls bench-snapshot: bench-%: $(CLUSTER)
	@$(call with,process) go -C bench run . $* $(ARGS)

.PHONY: dashboards
dashboards: ## Draw docs/dashboard-*.svg from what the test of the alerts records on the local cluster.
	@mkdir -p dist && DASHBOARD_RECORDINGS="$(CURDIR)/dist" $(MAKE) --no-print-directory test-host ARGS=-run=DashboardsHaveData && go -C bench run . dashboards $(CURDIR)/dist

.PHONY: bench-scale
bench-scale: $(CLUSTER) ## Measure the operator with many Memcacheds, and write docs/bench-scale.*; needs no cluster.
	@$(call with,cluster) go -C bench run . scale $(ARGS)

# Go knows whether it is up to date.
$(CLUSTER): FORCE
	@go -C hack/cluster build -o $@ .

# ready starts the local cluster, operator deploys the operator unless it is installed, and olm and olmv1 start OLM and
# OLM v1. On the cluster in KUBECONFIG, these do nothing.
.PHONY: ready scorecard-image operator olm olmv1
ifdef KUBECONFIG
ready scorecard-image operator olm olmv1:
else
ready: $(CLUSTER)
	@$(CLUSTER) up
scorecard-image: ready
	$(call load,$(USED_SCORECARD_IMG),scorecard,test/scorecard/Dockerfile,)
operator: ready
	@$(TOOLS) if [ -z "$$($(KUBECTL) get pods -A -l app.kubernetes.io/name=memcached-operator,control-plane=controller-manager -o name)" ]; then \
	$(MAKE) --no-print-directory deploy-as-generated; fi
olm: ready
	@$(CLUSTER) olm up
olmv1: ready
	@$(CLUSTER) olmv1 up
endif

# $(call load,IMAGE,NAME,DOCKERFILE,FLAGS) builds an image and loads it into the cluster.
load = @$(call LOCAL_BUILD,$(1),$(2),$(3),$(4)) && $(or $(LOAD_$(if $(KUBECONFIG),$(LOAD),local)),$(error LOAD is "$(LOAD)": set it to kind, k3d or push))
LOAD_local = $(CLUSTER) load $(1) dist/$(2).tar
LOAD_kind = kind load image-archive dist/$(2).tar
LOAD_k3d = k3d image import dist/$(2).tar
LOAD_push = $(CLUSTER) image push dist/$(2).tar $(1)

# image, e2e-image and demo-image load $(USED_IMG), $(E2E_IMG) and $(DEMO_IMG).
.PHONY: image e2e-image demo-image
ifneq ($(pulled),)
image e2e-image demo-image:
else
image: ready $(CLUSTER)
	$(call load,$(USED_IMG),operator,Dockerfile,--build-arg VERSION=$(VERSION) --local-base)
e2e-image: ready $(CLUSTER)
	$(call load,$(E2E_IMG),e2e,test/e2e/Dockerfile,)
demo-image: ready $(CLUSTER)
	$(call load,$(DEMO_IMG),demo,bench/demo/Dockerfile,)
endif
