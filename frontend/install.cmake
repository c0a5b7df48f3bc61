# The installed tree: the library, one set of headers under include/sinter, and the package that find_package(sinter)
# reads. The package finds LibTorch as the build did: through SINTER_LIBTORCH.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sinter)
install(TARGETS sinter EXPORT sinterTargets)
install(CODE "
  set(api \"${CMAKE_CURRENT_SOURCE_DIR}/include/sinter\")
  set(support \"${PROJECT_SOURCE_DIR}/compiler/support\")
  set(include_dir \"${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT ${CMAKE_CURRENT_SOURCE_DIR}/install_headers.cmake)
install(EXPORT sinterTargets NAMESPACE sinter:: DESTINATION ${package_dir})
install(FILES ${PROJECT_SOURCE_DIR}/cmake/LibTorch.cmake DESTINATION ${package_dir})
configure_package_config_file(sinterConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/sinterConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/sinterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/sinterConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/sinterConfigVersion.cmake
        DESTINATION ${package_dir})
