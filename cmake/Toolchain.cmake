# Warnings, sanitizers and ccache, the same for every target.
add_library(plenum_flags INTERFACE)
target_compile_options(plenum_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra --expt-relaxed-constexpr -lineinfo>)
# fmt takes nvcc for a compiler without constexpr, yet checks format strings with consteval: one without the other does
# not compile.
target_compile_definitions(plenum_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:FMT_USE_CONSTEXPR=1>)
# GCC takes the files of a unity build for headers, whose classes should have no members of types of one file.
if(CMAKE_UNITY_BUILD)
  target_compile_options(plenum_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:$<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>>)
endif()
if(PLENUM_WERROR)
  target_compile_options(plenum_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
endif()

if(PLENUM_SANITIZE)
  add_compile_options(-fsanitize=${PLENUM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PLENUM_SANITIZE})
endif()

find_program(PLENUM_CCACHE ccache)
if(PLENUM_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PLENUM_CCACHE})
endif()

if(PLENUM_CUDA)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90 CACHE STRING "GPU architectures")
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(CMAKE_CUDA_COMPILER nvcc PATHS /usr/local/cuda/bin)
    if(NOT CMAKE_CUDA_COMPILER)
      message(FATAL_ERROR "nvcc not found. Install CUDA 12.4 or later, or give its place with CUDACXX=/path/to/nvcc.")
    endif()
  endif()
  enable_language(CUDA)
  # CMake 3.25, which Debian 12 has, does not know that nvcc can compile C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  find_package(CUDAToolkit 12.4 REQUIRED)
  if(PLENUM_CCACHE)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${PLENUM_CCACHE})
  endif()
endif()

# The instruction set of the kernels: the highest x86-64 level of the machine that builds, as a name rather than
# "native", so that cached objects never move to a machine that lacks it.
if(NOT PLENUM_ISA)
  file(READ /proc/cpuinfo plenum_cpuinfo LIMIT 8192)
  set(plenum_isa x86-64-v2)
  if(plenum_cpuinfo MATCHES " avx2 " AND plenum_cpuinfo MATCHES " fma ")
    set(plenum_isa x86-64-v3)
  endif()
  if(plenum_cpuinfo MATCHES " avx512bw " AND plenum_cpuinfo MATCHES " avx512vl " AND plenum_cpuinfo MATCHES " avx512dq ")
    set(plenum_isa x86-64-v4)
  endif()
  set(PLENUM_ISA ${plenum_isa} CACHE STRING "Instruction set of the kernels: x86-64-v2, -v3 or -v4")
endif()
