# The unreleased version. Images and bundle/ are named after it.
VERSION ?= 1.2.0
# The bundle's createdAt, and @ with the digest of the operator's image if it is known. "make release" sets them.
RELEASED ?= 2026-11-27T19:45:58Z
DIGEST ?=

IMAGE_TAG_BASE ?= ghcr.io/memcached-operator/memcached-operator
IMG ?= $(IMAGE_TAG_BASE):v$(VERSION)
# As the bundle names it.
BUNDLED_IMG ?= $(IMG)$(DIGEST)
BUNDLE_IMG ?= $(IMAGE_TAG_BASE)-bundle:v$(VERSION)
# It contains all releases, so that clusters that poll it find the next one.
CATALOG_IMG ?= $(IMAGE_TAG_BASE)-catalog:latest
SCORECARD_IMG ?= $(IMAGE_TAG_BASE)-scorecard:v$(VERSION)

# Labels of the scorecard's tests to run; empty means all.
SELECTOR ?= suite=memcached
# The base of the catalog's image. "scratch" omits opm, which OLM provides then.
OPM_IMAGE ?= quay.io/operator-framework/opm:v1.73.0

CONTAINER_TOOL ?= docker
PLATFORMS ?= linux/amd64,linux/arm64
KUBECTL ?= kubectl
ignore-not-found ?= false
# LOAD is how images come to the cluster in KUBECONFIG: kind, k3d, or push to IMAGE_TAG_BASE. Empty: the cluster can pull them.
# The versions of memcached that are tested on the cluster in KUBECONFIG.
MEMCACHED_VERSIONS ?= 1.6.18 1.6.38 1.6.45
# ARGS for a shell, word by word: expressions contain | and parentheses.
QUOTED_ARGS = $(foreach word,$(ARGS),'$(subst ','\'',$(word))')

# What the prose check reads: files or directories of Markdown and Go.
PROSE ?= README.md CONTRIBUTING.md SECURITY.md MAINTAINERS.md CHANGELOG.md docs charts config/manifests/bases api cmd controllers internal hack test bench main.go

SHELL := /bin/bash
# One flavour for tests, tools, images and the local cluster: what is compiled for one of them serves the others.
# hack/cluster/internal/builds has the same flags. "go test" vets nothing, since test-vet and test-lint do.
export CGO_ENABLED := 0
ifeq ($(findstring -trimpath,$(GOFLAGS)),)
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -buildvcs=false -gcflags=all=-dwarf=false -vet=off)
endif

# Every module that is formatted, vetted and linted.
MODULES = . cmd/kubectl-memcached hack hack/cluster hack/tools/site test bench
GENERATED = api config/crd/bases config/rbac/role.yaml

CLUSTER = $(CURDIR)/bin/cluster
CONTROLLER_GEN = go tool -modfile=hack/tools/go.mod controller-gen
VALE = CGO_ENABLED=1 go tool -modfile=hack/tools/prose/go.mod vale
HUGO = go tool -modfile=hack/tools/site/go.mod hugo
GOLANGCI_LINT = go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint-kube-api-linter
CI_TOOL = go tool -modfile=$(CURDIR)/hack/tools/ci/go.mod
HACK = go -C hack run
LINK = -s -w -X main.version=$(VERSION)
STATIC_BUILD = go build -ldflags '$(LINK)'
# HTTP/2 needs TLS, which the agent's HTTP servers don't have, and 0.5 MB of each shard's memory. Huge pages of the heap, which uses them
# in part, need 2 MB each. Go has that setting only for the environment, which memcached inherits, and the linker.
AGENT_BUILD = go build -ldflags '$(LINK) -X runtime.godebugDefault=disablethp=1' -tags nethttpomithttp2

# After eval "$(make -s env)", KUBECONFIG names the local cluster, which make still starts and loads images into.
KUBECONFIG := $(filter-out $(if $(MEMCACHED_OPERATOR_CLUSTER),$(shell $(MEMCACHED_OPERATOR_CLUSTER) kubeconfig)),$(KUBECONFIG))

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
SOURCES = Dockerfile .dockerignore go.mod go.sum main.go api cmd/agent cmd/snapshot controllers internal
hash = find $(1) -type f $(2) | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-12
no_tests = ! -name '*_test.go'
pulled = $(and $(KUBECONFIG),$(if $(LOAD),,pulled))
USED_IMG = $(eval USED_IMG := $(IMG)$(if $(pulled),,-$(shell $(call hash,$(SOURCES),$(no_tests)))))$(USED_IMG)

# The images of the scorecard's tests, of the other tests, and of the demo's client, with such a hash.
SCORECARD_SOURCES = go.mod go.sum api internal test/go.mod test/go.sum test/internal test/scorecard
USED_SCORECARD_IMG = $(eval USED_SCORECARD_IMG := $(SCORECARD_IMG)$(if $(pulled),,-$(shell $(call hash,$(SCORECARD_SOURCES),$(no_tests)))))$(USED_SCORECARD_IMG)
E2E_SOURCES = $(SOURCES) config/crd/bases hack/cluster/dskit hack/cluster/s3 test/go.mod test/go.sum test/internal test/sim test/e2e
E2E_IMG = $(eval E2E_IMG := $(IMAGE_TAG_BASE):e2e-$(shell $(call hash,$(E2E_SOURCES))))$(E2E_IMG)
DEMO_SOURCES = go.mod go.sum api controllers internal config/samples test/go.mod test/go.sum test/internal bench
DEMO_IMG = $(eval DEMO_IMG := $(IMAGE_TAG_BASE):demo-$(shell $(call hash,$(DEMO_SOURCES),$(no_tests))))$(DEMO_IMG)

.DEFAULT_GOAL = help
.NOTPARALLEL:
.PHONY: $(shell sed -n 's/^\([a-z0-9-]*\):.*/\1/p' $(firstword $(MAKEFILE_LIST))) FORCE
FORCE:

##@ General

help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@printf '\nCONTRIBUTING.md has the others: tiers, benchmarks, images. They use the cluster in KUBECONFIG, or start a local one.\n'

# Remove bin/ and dist/; the local cluster and its cache stay.
clean:
	rm -rf bin dist

##@ Development

generate: ## Generate deep copies from api/.
	$(CONTROLLER_GEN) object paths=./api/...
manifests: ## Generate the CRDs from api/, and the operator's role from controllers/.
	$(CONTROLLER_GEN) crd:maxDescLen=400 paths=./api/... output:crd:dir=config/crd/bases
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./controllers/... output:rbac:dir=config/rbac
docs: ## Generate docs/api.md, docs/troubleshooting.md, docs/monitoring-metrics.md and config/monitoring.
	$(HACK) ./docs

# $(call installed,PROGRAMS,PACKAGES) installs packages of Debian unless one of the programs exists.
installed = @command -v $(1) >/dev/null || if [ "$$(id -u)" = 0 ]; then apt-get update -q && apt-get install -qy --no-install-recommends $(2); else \
	echo 'this needs one of $(1): run "apt-get install $(2)" as root'; exit 1; fi >&2

# Build the site of docs/ in dist/site; the first build takes three minutes.
docs-site:
	rm -rf dist/site
	$(HUGO) --source hack/site --destination $(CURDIR)/dist/site --panicOnWarning --noBuildLock
fmt: ## Format the Go code.
	@for module in $(MODULES); do go -C $$module fmt ./... || exit 1; done
vet:
	@for module in $(MODULES); do echo "go vet $$module" && go -C $$module vet ./... || exit 1; done
lint: ## Run golangci-lint; its first build takes minutes.
	@for module in $(MODULES); do echo "golangci-lint $$module" && (cd $$module && $(GOLANGCI_LINT) run) || exit 1; done
prose: ## Check the wording of PROSE; the first build takes two minutes and needs a C compiler.
	$(call installed,cc,gcc libc6-dev)
	@$(VALE) test hack/vale
	@$(VALE) $(addprefix ./,$(PROSE))

##@ Tests

# hack/suite has the table of tiers, runs them and reports.
SUITE = go -C hack build -o $(CURDIR)/bin/suite ./suite && exec bin/suite
test: $(CLUSTER) ## Test without root and without a cluster.
	@$(SUITE) quick
test-all: $(CLUSTER) ## Run every test; needs root for the local cluster, which it starts and stops.
	@$(SUITE) all
test-%: $(CLUSTER) FORCE ## Run one tier of the tests, such as test-unit or test-e2e, with flags of go test in ARGS.
	@$(SUITE) $* -- $(QUOTED_ARGS)
verify: check-generated check-vet ## Check that generated files are up to date, vet and format.
verify check-tools: GENERATORS = generate manifests bundle catalog docs
verify check-tools: GENERATED = api config bundle bundle.Dockerfile catalog charts docs cmd/kubectl-memcached/internal/screen/reasons.json
pr: verify lint test ## Check that a change is ready.
stress: ## Run tests of a folder 50 times on a busy machine: PKG=internal/handover RUN=Replacement
	@busy() { while kill -0 $$$$ 2>/dev/null; do :; done; }; busy & busy & \
	GOMAXPROCS=1 go -C $(PKG) test -count=50 -shuffle=on -timeout=60m -run '$(RUN)' . $(QUOTED_ARGS); status=$$?; exit $$status
env-api: $(CLUSTER) ## Print the environment of most tests (API server, memcached), for: eval "$(make -s env-api)"
	@$(CLUSTER) env api process

# In a copy, so that a tree that fails is left as it is.
GENERATORS = generate manifests
check-generated:
	@copy="$$(mktemp -d)" && trap 'rm -rf "$$copy"' EXIT && \
	git ls-files -zco --exclude-standard --deduplicate | tar -cf - --null --ignore-failed-read -T - 2>/dev/null | tar -xf - -C "$$copy" && \
	$(MAKE) --no-print-directory -s -C "$$copy" $(GENERATORS) && \
	for path in $(GENERATED); do diff -r "$$path" "$$copy/$$path" || { echo 'run "make generate manifests bundle catalog docs" and commit what changes'; exit 1; }; done

# The other modules are vetted by check-lint.
check-vet:
	@$(MAKE) --no-print-directory vet MODULES='. cmd/kubectl-memcached test bench'
	@unformatted="$$(git ls-files -co --exclude-standard '*.go' | xargs ls 2>/dev/null | xargs gofmt -l)" && \
	if [ -n "$$unformatted" ]; then echo 'run "make fmt": the format differs in'; echo "$$unformatted"; exit 1; fi
check-lint: lint prose check-modules check-site
	@$(CI_TOOL) actionlint && hack/commits.sh

# -count=1: Go's cache ignores changes of files outside of the module. A module that fails does not hide the next one.
check-tools: check-generated
	status=0; run() { go -C "$$1" test -json -count=1 "$${@:2}" || status=1; }; \
	for module in cmd/kubectl-memcached hack hack/cluster; do run $$module ./...; done; \
	run test ./internal/... ./scorecard/...; run bench $$(go -C bench list ./... | grep -v /tenants); exit $$status
VERSIONS = $(if $(KUBECONFIG),$(MEMCACHED_VERSIONS),$$(ls "$$MEMCACHED_DIR" | xargs))
tier-e2e: $(if $(KUBECONFIG),,olm not-by-olm) deploy-as-generated e2e-image
	set -o pipefail; $(ON_CLUSTER) go -C test run ./inpod --image $(E2E_IMG) --env TEST_IMAGE=$(E2E_IMG) --env "MEMCACHED_VERSIONS=$(VERSIONS)" \
	/e2e.test -test.v=test2json -test.timeout=60m $(QUOTED_ARGS) | go tool test2json -t -p e2e
tier-hostile: not-by-olm deploy-as-generated
	$(call with,cluster process) MEMCACHED_VERSIONS="$(VERSIONS)" go -C test test -json -count=1 -timeout 60m ./hostile $(QUOTED_ARGS)
tier-host: olm not-by-olm deploy-as-generated
	$(call with,cluster api process peers) IMG=$(USED_IMG) MEMCACHED_VERSIONS="$(VERSIONS)" go -C test test -json -count=1 -timeout 60m ./host $(QUOTED_ARGS)
tier-olmv1: not-by-olm image olmv1
	$(TOOLS) IMG=$(USED_IMG) go -C test test -json -count=1 -timeout 10m ./olmv1/... $(QUOTED_ARGS)

# Run the simulation with seeds from FROM (1) on for SOAK (10m), 500 steps each.
soak:
	@$(call with,api) go -C test test -count=1 -timeout 0 -v ./sim -run 'TestInvariantsHold' -seeds 0 -from $(or $(FROM),1) -for $(or $(SOAK),10m)
mutants: ## Change the code on the lines that differ from BASE (origin/main), and report what no test of the package detects.
	@$(HACK) ./mutants -base "$(or $(BASE),origin/main)" $(QUOTED_ARGS)
fuzz: ## Run every fuzz test for FUZZTIME (20s).
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' api cmd controllers internal | while IFS=: read -r file name; do \
		go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(or $(FUZZTIME),20s) "./$${file%/*}" || exit 1; done
check-modules:
	@for module in $$(git ls-files '*go.mod'); do echo "go mod tidy $${module%go.mod}" && go -C "./$${module%go.mod}" mod tidy -diff || exit 1; done

# Test the site in a browser; it looks at pages in both colour schemes and writes what it saw into dist/site-pictures.
check-site:
	$(call installed,chromium-headless-shell google-chrome,chromium-headless-shell)
	rm -rf dist/site-pictures && mkdir -p dist/site-pictures
	go -C hack/tools/site test -json -count=1 -artifacts -outputdir $(CURDIR)/dist/site-pictures .

check-vulnerabilities:
	@for module in $(MODULES); do echo "govulncheck $$module" && (cd $$module && $(CI_TOOL) govulncheck ./...) || exit 1; done

##@ Build and run

build: ## Build the operator, the agent and the backup program.
	$(STATIC_BUILD) -o bin/manager .
	$(AGENT_BUILD) -o bin/agent ./cmd/agent
	$(STATIC_BUILD) -o bin/snapshot ./cmd/snapshot

# Write the archives of the plugin for kubectl, their checksums and the manifest for Krew into dist/plugin.
plugin-archives:
	hack/plugin.sh $(VERSION) dist/plugin

# Build and push images with the container daemon. Without one, build the same Dockerfile into dist/NAME.tar and push that;
# --local-base builds without access to a registry.
HAS_DAEMON = $(CONTAINER_TOOL) info >/dev/null 2>&1
LOCAL_BUILD = $(CLUSTER) image build -t $(1) -o dist/$(2).tar -f $(3) $(4) .
docker-%: NAME = operator
docker-%: IMAGE = $(IMG)
docker-%: FILE = Dockerfile --build-arg VERSION=$(VERSION)
docker-%: LOCALLY = --local-base
bundle-%: NAME = bundle
bundle-%: IMAGE = $(BUNDLE_IMG)
bundle-%: FILE = bundle.Dockerfile
catalog-%: NAME = catalog
catalog-%: IMAGE = $(CATALOG_IMG)
catalog-%: FILE = catalog/Dockerfile --build-arg OPM_IMAGE=$(OPM_IMAGE)
scorecard-%: NAME = scorecard
scorecard-%: IMAGE = $(SCORECARD_IMG)
scorecard-%: FILE = test/scorecard/Dockerfile
docker-build bundle-build catalog-build scorecard-build: $(CLUSTER)
	@if $(HAS_DAEMON); then $(CONTAINER_TOOL) build -f $(FILE) -t $(IMAGE) .; else \
	echo '$(CONTAINER_TOOL) has no daemon: building $(IMAGE) into dist/$(NAME).tar without one' && $(call LOCAL_BUILD,$(IMAGE),$(NAME),$(FILE),$(LOCALLY)); fi
# The catalog of a release has a tag of its own, to go back to when the next one is wrong.
catalog-push: ALSO = $(IMAGE_TAG_BASE)-catalog:v$(VERSION)
docker-push bundle-push catalog-push scorecard-push: $(CLUSTER)
	@for image in $(IMAGE) $(ALSO); do if $(HAS_DAEMON); then $(CONTAINER_TOOL) tag $(IMAGE) $$image && $(CONTAINER_TOOL) push $$image; else \
	$(CLUSTER) image push dist/$(NAME).tar $$image; fi || exit 1; done
release-images: docker-build bundle-build catalog-build scorecard-build

docker-buildx:
	$(CONTAINER_TOOL) buildx build --push --build-arg VERSION=$(VERSION) --platform $(PLATFORMS) -t $(IMG) .
run: ready manifests generate image ## Run the operator in this shell with the flags in ARGS.
	go build -o bin/manager .
	@$(ON_CLUSTER) RELATED_IMAGE_AGENT="$${RELATED_IMAGE_AGENT:-$(USED_IMG)}" exec bin/manager $(QUOTED_ARGS)
install: ready manifests
	@$(ON_CLUSTER) $(KUBECTL) apply --server-side --force-conflicts -k config/crd
uninstall: ready
	@$(ON_CLUSTER) $(KUBECTL) delete --ignore-not-found=$(ignore-not-found) -k config/crd
deploy: ready manifests deploy-as-generated ## Run the operator in the cluster.
deploy-as-generated: ready image
	@$(ON_CLUSTER) owner="$$($(OLM_OWNER))" && if [ -n "$$owner" ]; then echo "the operator is already installed by OLM ($$owner); run \"make undeploy\" first"; exit 1; fi
	@$(ON_CLUSTER) $(KUBECTL) kustomize config/default | sed -E 's#[^ ]+/memcached-operator:v[^ ]+#$(USED_IMG)#' | $(KUBECTL) apply --server-side --force-conflicts -f -
	@$(ON_CLUSTER) $(KUBECTL) -n memcached-operator-system rollout status deployment/memcached-operator-controller-manager --timeout=2m
undeploy: ready ## Delete the operator, also one that OLM installed; Memcacheds keep serving (see uninstall).
	@$(ON_CLUSTER) ignored=$(ignore-not-found) && \
	if [ -n "$$($(OLM_OWNER))" ]; then ignored=true && $(KUBECTL) -n memcached-operator-system delete --all subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com; fi && \
	$(KUBECTL) kustomize config/default | awk -v RS='---\n' '!/\nkind: CustomResourceDefinition\n/ {printf "%s---\n", $$0}' | $(KUBECTL) delete --ignore-not-found=$$ignored -f -

# Deletes an operator that OLM installed.
not-by-olm: ready
	@$(ON_CLUSTER) if [ -n "$$($(OLM_OWNER))" ]; then $(MAKE) --no-print-directory undeploy; fi

##@ OLM

bundle: manifests ## Generate and validate bundle/, generate dist/install.yaml, and update charts/ and config/samples/olmv1.
	$(HACK) ./bundle $(VERSION) $(BUNDLED_IMG) $(SCORECARD_IMG) $(RELEASED)
catalog: ## Render catalog/configs from catalog/releases, and validate it.
	$(HACK) ./catalog render $(IMAGE_TAG_BASE)-bundle
scorecard: ready scorecard-image operator
	@$(ON_CLUSTER) trap '$(KUBECTL) delete --ignore-not-found -k config/scorecard/rbac' EXIT && trap 'exit 1' INT TERM && \
	$(KUBECTL) apply --server-side --force-conflicts -k config/scorecard/rbac && \
	go -C test run ./scorecard/run --bundle $(CURDIR)/bundle --namespace memcached-scorecard --service-account memcached-scorecard --image $(USED_SCORECARD_IMG) --selector '$(SELECTOR)'

# Prepare release VERSION (everything except pushing), with IMAGE_DIGEST of the operator if it is pushed already.
release:
	@hack/release.sh $(VERSION) $(IMAGE_DIGEST)

##@ Local cluster

cluster-up: $(CLUSTER) ## Start the local cluster: real Kubernetes on this machine; needs root.
	@$(CLUSTER) up
cluster-down: $(CLUSTER) ## Stop the local cluster.
	@$(CLUSTER) down
cluster-wipe: $(CLUSTER)
	@$(CLUSTER) down --wipe
env: $(CLUSTER) ## Print the environment of the tests, for: eval "$(make -s env)"
	@$(CLUSTER) env
demo: ready $(if $(KUBECONFIG),deploy-as-generated,image olm) demo-image ## Show what the operator does.
	@$(ON_CLUSTER) IMG=$(USED_IMG) DEMO_IMAGE=$(DEMO_IMG) go -C bench run . demo
bench-upgrade bench-handover bench-scaling bench-backup: bench-%: not-by-olm deploy-as-generated
	@$(ON_CLUSTER) go -C bench run . $* $(QUOTED_ARGS)
bench-memory bench-scrapes bench-tls bench-snapshot: bench-%: $(CLUSTER)
	@$(call with,process) go -C bench run . $* $(QUOTED_ARGS)
bench-scale: $(CLUSTER)
	@$(call with,cluster) go -C bench run . scale $(QUOTED_ARGS)
bench-size:
	@go -C bench run . size $(QUOTED_ARGS)

# Draw the charts in docs/ again from the data in them, and the diagrams.
pictures:
	@go -C bench run . pictures
# Draw docs/dashboard-*.svg from what the test of the alerts records on the local cluster.
dashboards:
	@mkdir -p dist && RECORDINGS="$(CURDIR)/dist" $(MAKE) --no-print-directory test-host ARGS=-run=DashboardsHaveData && go -C bench run . dashboards $(CURDIR)/dist
# Draw docs/quickstart.svg from what the test of the quickstart records on the local cluster.
recording:
	@mkdir -p dist && RECORDINGS="$(CURDIR)/dist" $(MAKE) --no-print-directory test-host ARGS=-run=CommandsOfTheQuickstart && go -C bench run . recording $(CURDIR)/dist/quickstart.cast
# Draw docs/plugin-*.svg from what the plugin for kubectl prints on the local cluster. A recommendation of memory takes an hour.
recording-plugin: ready
	@$(ON_CLUSTER) go -C bench run . screens

# Go knows whether it is up to date.
$(CLUSTER): FORCE
	@go -C hack/cluster build -o $@ .

# ready starts the local cluster, operator deploys the operator unless it is installed, and olm and olmv1 start OLM and
# OLM v1. On the cluster in KUBECONFIG, these do nothing, and all that changes it needs YES=1.
ifdef KUBECONFIG
ready:
	@[ "$(YES)" = 1 ] || { echo "this changes the cluster of the context $$($(KUBECTL) config current-context), which KUBECONFIG names: add YES=1, or unset KUBECONFIG"; exit 1; }
operator olm olmv1: ready
else
ready: $(CLUSTER)
	@$(CLUSTER) up
operator: ready
	@$(TOOLS) if [ -z "$$($(KUBECTL) get pods -A -l app.kubernetes.io/name=memcached-operator,control-plane=controller-manager -o name)" ]; then \
	$(MAKE) --no-print-directory deploy-as-generated; fi
olm: ready
	@$(CLUSTER) olm up
olmv1: ready
	@$(CLUSTER) olmv1 up
endif

# $(call load,IMAGE,NAME,DOCKERFILE,FLAGS) builds an image unless dist/ has it, and loads it into the cluster, unless the cluster pulls it.
load = $(if $(pulled),,@{ tar -xOf dist/$(2).tar manifest.json 2>&- | grep -qF '"$(1)"' || $(call LOCAL_BUILD,$(1),$(2),$(3),$(4)); } && $(or $(LOAD_$(if $(KUBECONFIG),$(LOAD),local)),$(error LOAD is "$(LOAD)": set it to kind, k3d or push)))
LOAD_local = $(CLUSTER) load $(1) dist/$(2).tar
LOAD_kind = kind load image-archive dist/$(2).tar
LOAD_k3d = k3d image import dist/$(2).tar
LOAD_push = $(CLUSTER) image push dist/$(2).tar $(1)

image: ready $(CLUSTER)
	$(call load,$(USED_IMG),operator,Dockerfile,--build-arg VERSION=$(VERSION) --local-base)
e2e-image: ready $(CLUSTER)
	$(call load,$(E2E_IMG),e2e,test/e2e/Dockerfile,)
scorecard-image: ready $(CLUSTER)
	$(call load,$(USED_SCORECARD_IMG),scorecard,test/scorecard/Dockerfile,)
demo-image: ready $(CLUSTER)
	$(call load,$(DEMO_IMG),demo,bench/demo/Dockerfile,)
