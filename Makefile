# The release in work. Images and bundle/ are named after it.
VERSION ?= 1.2.0
# When the release was made: the bundle's createdAt, so that it does not change with the day.
RELEASED ?= 2026-11-21T10:20:59Z

IMAGE_TAG_BASE ?= ghcr.io/memcached-operator/memcached-operator
IMG ?= $(IMAGE_TAG_BASE):v$(VERSION)
BUNDLE_IMG ?= $(IMAGE_TAG_BASE)-bundle:v$(VERSION)
# Not of one release: it holds them all, and who polls it finds the next one.
CATALOG_IMG ?= $(IMAGE_TAG_BASE)-catalog:latest
SCORECARD_IMG ?= $(IMAGE_TAG_BASE)-scorecard:v$(VERSION)

CHANNELS ?= stable-v1,candidate-v1
DEFAULT_CHANNEL ?= stable-v1
# Which of the scorecard's tests to run, by their labels; empty is all.
SELECTOR ?= suite=memcached
# The catalog's base; "scratch" makes an image of the catalog alone, for which OLM brings opm itself.
OPM_IMAGE ?= quay.io/operator-framework/opm:v1.73.0

CONTAINER_TOOL ?= docker
PLATFORMS ?= linux/amd64,linux/arm64
KUBECTL ?= kubectl
ignore-not-found ?= false
ARGS ?=
FUZZTIME ?= 20s
SOAK ?= 10m
FROM ?= 1

# Every module that is formatted, vetted and linted.
MODULES = . hack/cluster hack/catalog hack/image test
# What "make generate manifests bundle catalog" writes.
GENERATED = api config/crd/bases config/rbac/role.yaml config/samples/olmv1 bundle bundle.Dockerfile catalog

CLUSTER = $(CURDIR)/bin/cluster
CONTROLLER_GEN = go tool -modfile=hack/tools/go.mod controller-gen
GOLANGCI_LINT = go tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint
KUSTOMIZE = go run ./hack/kustomize
LDFLAGS = -s -w -X main.version=$(VERSION)
STATIC_BUILD = CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)'

# After eval "$(make -s env)", KUBECONFIG names the local cluster, which is still ours to start and to load images into.
ifneq ($(MEMCACHED_OPERATOR_CLUSTER),)
ifeq ($(KUBECONFIG),$(shell $(MEMCACHED_OPERATOR_CLUSTER) kubeconfig))
KUBECONFIG :=
endif
endif

# A recipe that begins with $(TOOLS) has the test tools of this machine, and KUBECONFIG and kubectl if there are none;
# with $(ON_CLUSTER), which on a cluster that KUBECONFIG names does without those tools, what a cluster needs.
# Two steps, so that no recipe goes on against some other cluster when the first one fails.
TOOLS = exports="$$($(CLUSTER) env)" && eval "$$exports" && PATH="$$PATH:$$KUBEBUILDER_ASSETS" &&
ON_CLUSTER = $(if $(KUBECONFIG),,$(TOOLS))

# The name under which OLM installed the operator, if it did.
OLM_OWNER = $(KUBECTL) -n memcached-operator-system get deployment memcached-operator-controller-manager --ignore-not-found -o jsonpath='{.metadata.labels.olm\.owner}'

# The operator's image on the cluster. On the local one its tag ends with a hash of what it is made of: a node that
# has an image of a name does not ask for a newer one. It is counted once a run: a file that is saved meanwhile must
# not change the name between the build and its use.
SOURCES = go.mod go.sum main.go agent api controllers internal snapshot
hash = find $(1) -type f ! -name '*_test.go' | LC_ALL=C sort | xargs sha256sum | sha256sum | cut -c1-12
USED_IMG = $(eval USED_IMG := $(IMG)$(if $(KUBECONFIG),,-$(shell $(call hash,$(SOURCES)))))$(USED_IMG)

# The scorecard's image, likewise.
SCORECARD_SOURCES = go.mod go.sum api internal test/go.mod test/go.sum test/internal test/scorecard
USED_SCORECARD_IMG = $(eval USED_SCORECARD_IMG := $(SCORECARD_IMG)$(if $(KUBECONFIG),,-$(shell $(call hash,$(SCORECARD_SOURCES)))))$(USED_SCORECARD_IMG)

# $(call tier,name) heads a tier of the tests with the time since make began.
ifndef TESTS_BEGAN
export TESTS_BEGAN := $(shell date +%s)
endif
tier = @printf '\n==> %s (after %s s)\n' '$(1)' "$$(($$(date +%s) - $(TESTS_BEGAN)))"

# $(call build,image,name,Dockerfile,arguments) and $(call push,image,name), with a container daemon or without.
HAS_DAEMON = $(CONTAINER_TOOL) info >/dev/null 2>&1
define build
	@if $(HAS_DAEMON); then $(CONTAINER_TOOL) build -f $(3) $(4) -t $(1) .; else \
	echo '$(CONTAINER_TOOL) has no daemon: building $(1) into dist/$(2).tar without one' && mkdir -p dist && \
	go -C hack/image run . build -f $(CURDIR)/$(3) $(4) -t $(1) -o $(CURDIR)/dist/$(2).tar $(CURDIR); fi
endef
define push
	@if $(HAS_DAEMON); then $(CONTAINER_TOOL) push $(1); else go -C hack/image run . push $(CURDIR)/dist/$(2).tar $(1); fi
endef

.DEFAULT_GOAL = help
.NOTPARALLEL:
.PHONY: FORCE
FORCE:

##@ General

.PHONY: help
help: ## Show this.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@printf '\nKUBECONFIG names the cluster; unset, it is a local one, which is made when it is needed.\n'

.PHONY: clean
clean: ## Remove what was built in this checkout; the local cluster and its cache stay.
	rm -rf bin dist

##@ Development

.PHONY: generate
generate: ## Generate deep copies and apply configurations from api/.
	$(CONTROLLER_GEN) object applyconfiguration paths=./api/...

.PHONY: manifests
manifests: ## Generate the CRDs from api/ and the operator's role from controllers/.
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:dir=config/crd/bases
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./controllers/... output:rbac:dir=config/rbac

.PHONY: fmt
fmt: ## Format the Go code.
	@for module in $(MODULES); do go -C $$module fmt ./... || exit 1; done

.PHONY: vet
vet: ## Run go vet.
	@for module in $(MODULES); do echo "go vet $$module" && go -C $$module vet ./... || exit 1; done

.PHONY: lint
lint: ## Run golangci-lint; its first build takes minutes.
	@for module in $(MODULES); do echo "golangci-lint $$module" && (cd $$module && $(GOLANGCI_LINT) run) || exit 1; done

##@ Tests

.PHONY: test
test: $(CLUSTER) ## Run every tier of the tests, on the local cluster if KUBECONFIG names none.
	@if [ -z "$(KUBECONFIG)" ] && $(CLUSTER) status | grep -q "does not run"; then trap '$(CLUSTER) down' EXIT; trap 'exit 1' INT TERM; fi; \
	$(MAKE) --no-print-directory test-generated test-vet test-unit test-cluster test-sim test-process test-e2e test-scorecard
	$(call tier,all tests passed)

.PHONY: test-generated
test-generated: ## Prove that generated files are up to date.
	$(call tier,generated files)
	@before="$$(find $(GENERATED) -type f | sort | xargs cksum)" && \
	$(MAKE) --no-print-directory -s generate manifests bundle catalog && \
	if [ "$$before" != "$$(find $(GENERATED) -type f | sort | xargs cksum)" ]; then echo 'generated files were out of date; they are up to date now'; exit 1; fi

.PHONY: test-vet
test-vet:
	$(call tier,vet)
	@$(MAKE) --no-print-directory vet

.PHONY: test-unit
test-unit: $(CLUSTER) ## Test the operator's module, against an API server too.
	$(call tier,unit and API server)
	@$(TOOLS) go test ./...

.PHONY: test-cluster
test-cluster: $(CLUSTER) ## Test the local cluster's program and the other tools.
	$(call tier,tools)
	@# -count=1: go does not see that files outside of a module changed.
	@for module in hack/cluster hack/catalog hack/image; do go -C $$module test -count=1 ./... || exit 1; done
	@$(TOOLS) go -C test test -count=1 ./internal/... ./scorecard/... ./bench/... ./benchbackup/... ./benchscale/... ./mutants/...

.PHONY: test-sim
test-sim: $(CLUSTER) ## Test the operator in a simulated world in which everything goes wrong that can.
	$(call tier,simulation)
	@$(TOOLS) GOGC=400 go -C test test -count=1 -timeout 20m ./sim

.PHONY: test-process
test-process: $(CLUSTER) ## Test agent and protocol against real memcached processes.
	$(call tier,processes)
	@$(TOOLS) go -C test test -count=1 ./process/...

.PHONY: test-e2e
test-e2e: olm not-by-olm deploy-as-generated ## Test on a cluster.
	$(call tier,cluster)
	@$(TOOLS) IMG=$(USED_IMG) go -C test test -count=1 -timeout 40m -v ./e2e/...

.PHONY: test-scorecard
test-scorecard: ## Run the scorecard's tests of ours.
	$(call tier,scorecard)
	@$(MAKE) --no-print-directory scorecard

.PHONY: test-olmv1
test-olmv1: not-by-olm image olmv1 ## Test with OLM v1 on the local cluster; there must be no Memcached, as OLM v1 deletes them all.
	$(call tier,OLM v1)
	@$(TOOLS) IMG=$(USED_IMG) go -C test test -count=1 -timeout 10m -v ./olmv1/...

.PHONY: soak
soak: ## Let the simulation go through seeds from FROM on for SOAK, each with 500 steps.
	@GOGC=400 go -C test test -count=1 -timeout 0 -v ./sim -run 'TestWhateverHappens' -seeds 0 -from $(FROM) -for $(SOAK)

.PHONY: fuzz
fuzz: ## Fuzz every fuzz target for FUZZTIME.
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' agent api controllers internal snapshot | while IFS=: read -r file name; do \
		go test -run '^$$' -fuzz "^$${name#func }\$$" -fuzztime $(FUZZTIME) "./$${file%/*}" || exit 1; done

.PHONY: mutants
mutants: $(CLUSTER) ## Break the code in many places, prove that the tests notice each, with the flags in ARGS, and write docs/mutants.md; takes 40 min.
	@$(TOOLS) go -C test run ./mutants $(ARGS)

##@ Build

.PHONY: build
build: ## Build the operator, the agent and the program of backups.
	$(STATIC_BUILD) -o bin/manager .
	$(STATIC_BUILD) -o bin/agent ./agent
	$(STATIC_BUILD) -o bin/snapshot ./snapshot

.PHONY: docker-build
docker-build: ## Build the operator's image; without a container daemon, into dist/.
	@if $(HAS_DAEMON); then $(CONTAINER_TOOL) build --build-arg VERSION=$(VERSION) -t $(IMG) .; else \
	echo '$(CONTAINER_TOOL) has no daemon: building $(IMG) into dist/operator.tar without one' && \
	$(MAKE) --no-print-directory dist/operator.tar; fi

.PHONY: docker-push
docker-push: ## Push the operator's image.
	$(call push,$(IMG),operator)

.PHONY: docker-buildx
docker-buildx: ## Build and push the operator's image for all PLATFORMS.
	$(CONTAINER_TOOL) buildx build --push --build-arg VERSION=$(VERSION) --platform $(PLATFORMS) -t $(IMG) .

dist/operator.tar: $(CLUSTER) FORCE
	@mkdir -p dist
	$(CLUSTER) operator-image $(IMG) --source $(CURDIR) --ldflags '$(LDFLAGS)' -o $(CURDIR)/$@

##@ Operator

.PHONY: run
run: manifests generate image ## Run the operator from this shell with the flags in ARGS, until it is interrupted.
	go build -o bin/manager .
	@$(ON_CLUSTER) RELATED_IMAGE_AGENT="$${RELATED_IMAGE_AGENT:-$(USED_IMG)}" exec bin/manager $(ARGS)

.PHONY: install
install: manifests ready ## Install the CRDs.
	@$(ON_CLUSTER) $(KUSTOMIZE) config/crd | $(KUBECTL) apply --server-side --force-conflicts -f -

.PHONY: uninstall
uninstall: ready ## Remove the CRDs and with them every Memcached.
	@$(ON_CLUSTER) $(KUSTOMIZE) config/crd | $(KUBECTL) delete --ignore-not-found=$(ignore-not-found) -f -

.PHONY: deploy
deploy: manifests deploy-as-generated ## Run the operator in the cluster.

.PHONY: deploy-as-generated
deploy-as-generated: image
	@$(ON_CLUSTER) owner="$$($(OLM_OWNER))" && if [ -n "$$owner" ]; then echo "OLM installed the operator as $$owner, and two would fight: run make undeploy first"; exit 1; fi
	@$(ON_CLUSTER) $(KUSTOMIZE) --image controller=$(USED_IMG) config/default | $(KUBECTL) apply --server-side --force-conflicts -f -
	@$(ON_CLUSTER) $(KUBECTL) -n memcached-operator-system rollout status deployment/memcached-operator-controller-manager --timeout=2m

.PHONY: undeploy
undeploy: ready ## Remove the operator, by OLM too; Memcacheds stay and serve (see uninstall).
	@$(ON_CLUSTER) ignored=$(ignore-not-found) && \
	if [ -n "$$($(OLM_OWNER))" ]; then ignored=true && $(KUBECTL) -n memcached-operator-system delete --all subscriptions.operators.coreos.com,clusterserviceversions.operators.coreos.com; fi && \
	$(KUSTOMIZE) --without CustomResourceDefinition config/default | $(KUBECTL) delete --ignore-not-found=$$ignored -f -

# An operator that OLM installed is removed; any other one stays.
.PHONY: not-by-olm
not-by-olm: ready
	@$(ON_CLUSTER) if [ -n "$$($(OLM_OWNER))" ]; then $(MAKE) --no-print-directory undeploy; fi

##@ OLM

.PHONY: bundle
bundle: manifests ## Generate bundle/, bundle.Dockerfile and config/samples/olmv1 from config/, and validate the bundle.
	go run ./hack/bundle generate --version $(VERSION) --image $(IMG) --scorecard-image $(SCORECARD_IMG) --catalog-image $(CATALOG_IMG) --created-at $(RELEASED) --channels $(CHANNELS) --default-channel $(DEFAULT_CHANNEL)
	@$(MAKE) --no-print-directory validate

.PHONY: validate
validate: ## Validate bundle/ with the checks of OperatorHub.
	go run ./hack/bundle validate

.PHONY: bundle-build
bundle-build: ## Build the bundle's image; without a container daemon, into dist/.
	$(call build,$(BUNDLE_IMG),bundle,bundle.Dockerfile,)

.PHONY: bundle-push
bundle-push: ## Push the bundle's image.
	$(call push,$(BUNDLE_IMG),bundle)

.PHONY: catalog-add
catalog-add: # Keep bundle/ as a release and list it in the catalog's template.
	go -C hack/catalog run . add $(BUNDLE_IMG)

.PHONY: catalog
catalog: ## Render catalog/configs of the releases that its template lists, and validate it.
	go -C hack/catalog run . render

.PHONY: catalog-build
catalog-build: ## Build the catalog's image; without a container daemon, into dist/.
	$(call build,$(CATALOG_IMG),catalog,catalog/Dockerfile,--build-arg OPM_IMAGE=$(OPM_IMAGE))

.PHONY: catalog-push
catalog-push: ## Push the catalog's image.
	$(call push,$(CATALOG_IMG),catalog)

.PHONY: scorecard
scorecard: scorecard-image operator ## Run the scorecard's tests that SELECTOR names against the operator that runs.
	@$(ON_CLUSTER) rights="$$($(KUSTOMIZE) config/scorecard/rbac)" && \
	trap 'echo "$$rights" | $(KUBECTL) delete --ignore-not-found -f -' EXIT && trap 'exit 1' INT TERM && \
	echo "$$rights" | $(KUBECTL) apply --server-side --force-conflicts -f - && \
	go -C test run ./scorecard/run --bundle $(CURDIR)/bundle --namespace memcached-scorecard --image $(USED_SCORECARD_IMG) --selector '$(SELECTOR)'

.PHONY: scorecard-build
scorecard-build: ## Build the scorecard's image; without a container daemon, into dist/.
	@if $(HAS_DAEMON); then $(CONTAINER_TOOL) build -f test/scorecard/Dockerfile -t $(SCORECARD_IMG) .; else \
	echo '$(CONTAINER_TOOL) has no daemon: building $(SCORECARD_IMG) into dist/scorecard.tar without one' && \
	$(MAKE) --no-print-directory dist/scorecard.tar; fi

.PHONY: scorecard-push
scorecard-push: ## Push the scorecard's image.
	$(call push,$(SCORECARD_IMG),scorecard)

# The stage that compiles is done here, with the flags that its Dockerfile has.
dist/scorecard.tar: FORCE
	@CGO_ENABLED=0 GOOS=linux go -C test build -trimpath -ldflags '-s -w' -o $(CURDIR)/dist/scorecard/out/scorecard-memcached ./scorecard
	@go -C hack/image run . build -f $(CURDIR)/test/scorecard/Dockerfile --stage build=$(CURDIR)/dist/scorecard -t $(SCORECARD_IMG) -o $(CURDIR)/$@ $(CURDIR)

.PHONY: release
release: ## Make the release VERSION, all but pushing it.
	@go run ./hack/release $(VERSION)

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
cluster-wipe: $(CLUSTER) ## Stop the local cluster and forget what is in it; what was built stays.
	@$(CLUSTER) down --wipe

.PHONY: env
env: $(CLUSTER) ## Print what the tests need, for: eval "$(make -s env)"
	@$(CLUSTER) env

.PHONY: demo
demo: $(if $(KUBECONFIG),deploy-as-generated,image olm) ## Show what the operator does, on the local cluster if KUBECONFIG names none.
	@$(ON_CLUSTER) IMG=$(USED_IMG) go -C test run ./demo

.PHONY: bench-upgrade
bench-upgrade: not-by-olm deploy-as-generated ## Measure what an upgrade of memcached costs a client, with the flags in ARGS, and write docs/bench-upgrade.*; takes 8 min.
	@$(ON_CLUSTER) go -C test run ./bench $(ARGS)

.PHONY: bench-backup
bench-backup: not-by-olm deploy-as-generated ## Measure what a backup and a restore cost, with the flags in ARGS, and write docs/bench-backup.md; takes 4 min.
	@$(ON_CLUSTER) go -C test run ./benchbackup $(ARGS)

.PHONY: bench-scale
bench-scale: $(CLUSTER) ## Measure what the operator does with many Memcacheds, with the flags in ARGS, and write docs/bench-scale.*; needs no cluster.
	@$(TOOLS) go -C test run ./benchscale $(ARGS)

# Always asked: go knows whether it is up to date.
$(CLUSTER): FORCE
	@go -C hack/cluster build -buildvcs=false -o $@ .

# ready: there is a cluster. image, scorecard-image: it can pull $(USED_IMG), $(USED_SCORECARD_IMG). On the local one,
# operator: one runs, whoever installed it; olm, olmv1: OLM, OLM v1 runs.
.PHONY: ready image scorecard-image operator olm olmv1
ifdef KUBECONFIG
ready image scorecard-image operator olm olmv1:
else
ready: $(CLUSTER)
	@$(CLUSTER) up
image: ready
	@$(CLUSTER) operator-image $(USED_IMG) --source $(CURDIR) --ldflags '$(LDFLAGS)'
scorecard-image: ready dist/scorecard.tar
	@$(CLUSTER) load $(USED_SCORECARD_IMG) dist/scorecard.tar
operator: ready
	@$(TOOLS) if [ -z "$$($(KUBECTL) get pods -A -l app.kubernetes.io/name=memcached-operator,control-plane=controller-manager -o name)" ]; then \
	$(MAKE) --no-print-directory deploy-as-generated; fi
olm: ready
	@$(CLUSTER) olm up
olmv1: ready
	@$(CLUSTER) olmv1 up
endif
