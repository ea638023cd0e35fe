# Every library Plenum links, found in one place. `make bundle` unpacks them into bundle/ for machines without a
# network; what lies there is looked up before the system's own.
if(EXISTS ${PROJECT_SOURCE_DIR}/bundle/usr/include)
  list(PREPEND CMAKE_PREFIX_PATH ${PROJECT_SOURCE_DIR}/bundle/usr)
  message(STATUS "Using the dependencies in ${PROJECT_SOURCE_DIR}/bundle")
endif()

function(plenum_require target header library hint)
  find_path(${target}_INCLUDE ${header})
  if(library)
    find_library(${target}_LIBRARY ${library})
  endif()
  if(NOT ${target}_INCLUDE OR (library AND NOT ${target}_LIBRARY))
    message(FATAL_ERROR "${header} not found. Install ${hint}, or run tools/bootstrap, or give its prefix with "
                        "-DCMAKE_PREFIX_PATH=DIR, or run `make bundle` on a machine with a network and copy bundle/ here.")
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${${target}_INCLUDE})
  if(library)
    target_link_libraries(${target} INTERFACE ${${target}_LIBRARY})
  endif()
endfunction()

find_package(Threads REQUIRED)
plenum_require(dep_cli11 CLI/CLI.hpp "" libcli11-dev)
plenum_require(dep_json nlohmann/json.hpp "" nlohmann-json3-dev)
plenum_require(dep_toml toml++/toml.h "" libtomlplusplus-dev)
plenum_require(dep_fmt fmt/format.h fmt libfmt-dev)
plenum_require(dep_simdjson simdjson.h simdjson libsimdjson-dev)
plenum_require(dep_utf8proc utf8proc.h utf8proc libutf8proc-dev)
plenum_require(dep_xxhash xxhash.h xxhash libxxhash-dev)
plenum_require(dep_zlib zlib.h z zlib1g-dev)
plenum_require(dep_zstd zstd.h zstd libzstd-dev)

if(PLENUM_MPI)  # AUTO is true, too
  set(MPI_CXX_SKIP_MPICXX ON)  # the C interface is all that is used
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(plenum_has_mpi ON)
  elseif(PLENUM_MPI STREQUAL "AUTO")
    message(STATUS "MPI not found: ranks can be threads, not processes")
  else()
    message(FATAL_ERROR "MPI not found. Install libopenmpi-dev and openmpi-bin, or libmpich-dev and mpich, or give "
                        "-DPLENUM_MPI=OFF.")
  endif()
endif()
