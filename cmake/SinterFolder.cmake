# One static library per folder: sinter_folder(ir DEPENDS sinter_support) makes target sinter_ir from every .cpp here.
function(sinter_folder name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(sinter_${name} STATIC ${sources})
  target_include_directories(sinter_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(sinter_${name} PUBLIC ${ARG_DEPENDS} PRIVATE sinter_warnings)
endfunction()
