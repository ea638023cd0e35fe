# Warnings, sanitizers and ccache, the same for every target.
add_library(plenum_flags INTERFACE)
target_compile_options(plenum_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(PLENUM_WERROR)
  target_compile_options(plenum_flags INTERFACE -Werror)
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
  set(CMAKE_CUDA_ARCHITECTURES 80 86 89 90 CACHE STRING "GPU architectures")
  enable_language(CUDA)
endif()
