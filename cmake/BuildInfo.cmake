# What this build was made of, for `plenum doctor` and `plenum --version`. Parts that nothing links yet are looked up
# all the same, so that doctor can say what a machine offers.
find_package(CUDAToolkit QUIET)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/build_info.h.in ${PROJECT_BINARY_DIR}/generated/plenum_build_info.h @ONLY)
