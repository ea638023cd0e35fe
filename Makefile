# Two commands do everything on a fresh machine: `make demo` and `make test`. `make help` lists the rest.
.DEFAULT_GOAL := build
PRESET ?= cpu
JOBS ?= $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)

.PHONY: help build demo test soak sanitize fuzz compare bench reproduce format lint bundle clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 12

build: ## Build build/plenum (PRESET=cuda: build-cuda/plenum; also asan, tsan)
	@tools/bootstrap build
	@tools/build $(PRESET) plenum

demo: ## Train a small BERT on real text in two minutes, from text to Hugging Face model
	@tools/bootstrap build demo
	@tools/build cpu plenum
	@tools/demo

test: ## Run every test that needs no accelerator; compiles the CUDA backend where nvcc is
	@tools/bootstrap build test
	@tools/build cpu
	@ctest --preset cpu --no-tests=error --parallel $(JOBS)
	@tools/test_cuda
	@tools/compare 5
	@tools/build asan fuzzers
	@tools/fuzz short

soak: ## Run the long forms of tests, JOBS at a time: 10,000 damages of every schedule, for hours
	@tools/bootstrap build test
	@tools/build cpu
	@tools/soak $(JOBS)

sanitize: ## Run the tests under the sanitizers of the compiler, and of CUDA where there is a GPU
	@tools/bootstrap build test
	@tools/build asan
	@ctest --preset asan --no-tests=error --parallel $(JOBS)
	@tools/build tsan
	@ctest --preset tsan --no-tests=error --parallel $(JOBS)
	@tools/sanitize_cuda

fuzz: ## Fuzz every parser for a long time (SECONDS_EACH=600), guided by coverage where clang is there
	@tools/bootstrap build test fuzz
	@tools/fuzz long

compare: ## Compare ids with Hugging Face tokenizers over a large mixed text (MEGABYTES=50)
	@tools/bootstrap build test
	@tools/build cpu plenum
	@tools/compare $(or $(MEGABYTES),50)

bench: ## Measure, beside the peers where they can be installed
	@tools/bootstrap build bench
	@tools/build cpu
	@tools/bench

cpu_benches = bench_ablation bench_clipping bench_exchange bench_leaks
gpu_benches = bench_ablation $(addprefix bench_gpu_,train attention_bench linear elementwise optimizer)
reproduce: ## Measure the published results anew: bench/reproduce (ROWS="..."; LONG=1; PRESET=cuda ONLY=gpu)
	@tools/bootstrap build bench
	@tools/build $(PRESET) plenum $(if $(filter gpu,$(ONLY)),,$(cpu_benches)) $(if $(filter cuda,$(PRESET)),$(gpu_benches))
	@python3 bench/reproduce --build $(if $(filter cpu,$(PRESET)),build,build-$(PRESET)) $(if $(ROWS),--rows $(ROWS)) \
	  $(if $(ONLY),--only $(ONLY)) $(if $(LONG),--long)

format: ## Format all sources
	@tools/bootstrap lint
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i

lint: ## Check format and run clang-tidy
	@tools/bootstrap build test lint
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format --dry-run -Werror
	@cmake --preset lint >/dev/null
	@git ls-files 'plenum/*.cpp' | xargs -P $(JOBS) -n 4 clang-tidy --quiet -p build-lint

bundle: ## Gather what a machine without a network lacks into bundle/
	@tools/bundle

clean: ## Remove everything that was built
	rm -rf build build-cuda build-cuda-test build-asan build-tsan build-fuzz build-lint demo
