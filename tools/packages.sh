# The Debian and Ubuntu packages Plenum needs, by purpose: the one list that tools/bootstrap and tools/bundle read.
# shellcheck shell=bash disable=SC2034
packages_build=(g++ cmake ninja-build ccache
  libcli11-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libsimdjson-dev
  libutf8proc-dev libxxhash-dev libzstd-dev zlib1g-dev)
# Without MPI the program has ranks that are threads only, so a build does not ask for it; the tests and benchmarks do.
packages_test=(libgtest-dev libgmock-dev libopenmpi-dev openmpi-bin python3 python3-venv)
packages_bench=(libbenchmark-dev libopenmpi-dev openmpi-bin python3 python3-venv)
# The runtime of the fuzzer is packaged by clang's own version.
clang_version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -n 1)
packages_fuzz=(clang "libclang-rt-${clang_version:-14}-dev")
packages_lint=(clang-format clang-tidy)
packages_demo=(gzip)
# Headers and libraries that `make bundle` gathers for machines without a network.
packages_bundle=(libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libfmt-dev libsimdjson-dev
  libutf8proc-dev libxxhash-dev libzstd-dev zlib1g-dev libgtest-dev libgmock-dev libbenchmark-dev)
