# Defines SINTER_PLANTED_BUGS for the sources with seams (compiler/support/planted.h), where the option asks for them.
function(sinter_plant)
  if(NOT SINTER_PLANTED_BUGS)
    return()
  endif()
  foreach(source ${ARGN})
    file(STRINGS ${source} seams REGEX "planted\\(Bug::")
    if(seams)
      set_source_files_properties(${source} PROPERTIES COMPILE_DEFINITIONS SINTER_PLANTED_BUGS)
    endif()
  endforeach()
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/SinterUnity.cmake)

# One static library per folder: sinter_folder(ir DEPENDS sinter_support) makes target sinter_ir from every .cpp here.
function(sinter_folder name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(sinter_${name} STATIC ${sources})
  sinter_plant(${sources})
  sinter_unity_batches(sinter_${name})
  target_include_directories(sinter_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(sinter_${name} PUBLIC ${ARG_DEPENDS} PRIVATE sinter_warnings)
endfunction()

# Adds the part of a folder that talks to CUDA: cuda/*.cpp, or where LibTorch has no CUDA without_cuda/*.cpp, which
# answers the same headers. SINTER_CUDA_PART: the sources.
function(sinter_cuda_part target)
  if(SINTER_CUDA)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ARGN}cuda/*.cpp)
  else()
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${ARGN}without_cuda/*.cpp)
  endif()
  target_sources(${target} PRIVATE ${sources})
  sinter_plant(${sources})
  set(SINTER_CUDA_PART ${sources} PARENT_SCOPE)
endfunction()
