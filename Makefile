# The front door: everything is done by scripts/ and by CMake's presets.
SHELL := /bin/bash
PREFIX ?= /usr/local
PRESET ?= release

.DEFAULT_GOAL := help
.PHONY: help setup build quickstart check test fuzz site gpu-kit test-gpu-kit test-partitioned test-pod test-plugin test-torch test-slurm install dist wheel test-dist image test-image release format clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 20

setup: ## install what is missing: Debian packages, LibTorch, the XLA CPU plugin
	@scripts/setup

build: ## build the program into build/release (PRESET=dev also builds the tests)
	@scripts/build $(PRESET)

quickstart: ## from a clean clone to a trained ResNet, with a summary
	@scripts/quickstart

check: ## before a commit: builds the tests without sanitizers and runs the fast ones, in under 8 minutes
	@scripts/check

test: ## the whole test suite, under sanitizers
	@scripts/test

RECIPE = recipes/run_emulated.py --pod-plugin build/dev/tests/pjrt/libsluice_pod_plugin.so $(if $(DATA),--data $(DATA))

test-pod: ## the recipe of docs/recipes at full size, on an emulated pod of 4 hosts with 8 devices each (DATA=folder of CIFAR-10 shards)
	@scripts/build release
	@scripts/build dev sluice_pod_plugin
	@$(RECIPE) --out out/pod
	@$(RECIPE) --out out/pod-resnet50 --model resnet50 --lr 0.5 --epochs 1 --steps-per-epoch 2 --test-shards 2

test-partitioned: ## every operation and 200 random models, laid out over meshes of CPU devices (takes hours)
	@scripts/build dev sluice_conformance_partitioned fuzz_models
	@build/dev/tests/conformance/partitioned/sluice_conformance_partitioned --everything
	@build/dev/tests/fuzz/models/fuzz_models --count 200 --seed $${SEED:-1}

test-plugin: ## the tests of values with another CPU plugin, into docs/versions.md (PLUGIN=file.so)
	@scripts/test_plugin "$(PLUGIN)"

test-torch: ## the tests of values with another LibTorch, into docs/versions.md (VERSION=2.14, or a folder)
	@scripts/test_torch "$(VERSION)"

test-slurm: ## programs under a real Slurm on this machine (as root, with Debian's slurm-wlm and munge)
	@scripts/setup
	@cmake --preset dev >/dev/null
	@cmake --build --preset dev --target sluice_print_placement sluice_program
	@tests/pod/slurm_test.sh build/dev/tests/pod/sluice_print_placement build/dev/apps/sluice

install: ## install the program and the library (PREFIX=/usr/local)
	@scripts/install "$(PREFIX)"

dist: ## an archive and a wheel that run on any Debian 12 or Ubuntu 22.04, in build/dist
	@scripts/dist

wheel: ## the wheel alone
	@scripts/dist --wheel

test-dist: ## what `make dist` made, in bare roots made with debootstrap (as root; SUITES="bookworm jammy")
	@tests/install/dist_test.sh $(SUITES)

image: ## an OCI image with what `make dist` packs, in build/dist (as root, with Debian's mmdebstrap and umoci)
	@scripts/image

test-image: ## what `make image` made: trains in it as a plain user with a read-only root (as root)
	@tests/install/image_test.sh

release: ## the files of a release with sums, in out/release (KEY=secret key of minisign signs them)
	@scripts/release $(if $(KEY),--key "$(KEY)")

gpu-kit: ## what tells on a machine with an NVIDIA GPU whether Sluice is right and fast there, in build/gpu-kit
	@scripts/gpu_kit

test-gpu-kit: ## the kit in a bare Ubuntu 24.04 without a GPU, and its programs compiled for an H100 (as root)
	@tests/install/gpu_kit_test.sh

fuzz: ## 10^7 damaged archives, lists, images and arrays, under sanitizers; for a night
	@cmake --preset ci -DSLUICE_TORCH=OFF -B build/fuzz-ci >/dev/null
	@cmake --build build/fuzz-ci --target fuzz_long

site: ## the docs as a site, with the public headers, in build/site (needs Debian's doxygen)
	@scripts/site

format: ## format the sources with clang-format
	@scripts/format

clean: ## remove build and out (the fetched .deps stay)
	@rm -rf build out
