# The library's sources that some files need, found by following what they include: for programs that use a few files of
# many folders and are dear to build, as with sanitizers.
#   plenum_sources_behind(VARIABLE FILE ...)     paths from the top of the project
#
# Behind a header stands the source of its name, and any source of its folder that has no header of its own and includes
# it. What this rule misses, the linker names. These programs are built without CUDA, MPI and NCCL:
# cuda_absent.cpp, mpi_absent.cpp and nccl_absent.cpp stand for them.
function(plenum_included_files result file)
  file(STRINGS ${PROJECT_SOURCE_DIR}/${file} lines REGEX "^#include \"(plenum|tests)/")
  list(TRANSFORM lines REPLACE "^#include \"([^\"]*)\".*" "\\1")
  set(${result} ${lines} PARENT_SCOPE)
endfunction()

function(plenum_sources_behind result)
  file(GLOB_RECURSE lone_sources RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plenum/*.cpp)
  foreach(source ${lone_sources})
    string(REGEX REPLACE "cpp$" "h" header ${source})
    if(EXISTS ${PROJECT_SOURCE_DIR}/${header})
      list(REMOVE_ITEM lone_sources ${source})
    endif()
  endforeach()

  set(pending ${ARGN})
  set(reached)
  while(pending)
    list(POP_FRONT pending file)
    if(file IN_LIST reached)
      continue()
    endif()
    list(APPEND reached ${file})
    plenum_included_files(included ${file})
    list(APPEND pending ${included})
    if(file MATCHES "h$")
      string(REGEX REPLACE "h$" "cpp" source ${file})
      if(EXISTS ${PROJECT_SOURCE_DIR}/${source} AND NOT source MATCHES "/cuda[_/]|/comm/(mpi|nccl)/")
        list(APPEND pending ${source})
      endif()
      get_filename_component(folder ${file} DIRECTORY)
      foreach(source ${lone_sources})
        plenum_included_files(included ${source})
        if(source MATCHES "^${folder}/[a-z_]*\\.cpp$" AND file IN_LIST included)
          list(APPEND pending ${source})
        endif()
      endforeach()
    endif()
  endwhile()
  list(TRANSFORM reached PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE read_files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${read_files})  # what they include may change

  list(FILTER reached INCLUDE REGEX "^plenum/.*cpp$")
  list(TRANSFORM reached PREPEND ${PROJECT_SOURCE_DIR}/)
  set(${result} ${reached} PARENT_SCOPE)
endfunction()
