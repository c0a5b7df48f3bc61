# The library as a folder of another project: compiles it a second time.

dev_subdirectory() {
  dev_setup
  configure release
  cmake --preset release -DSINTER_SUBDIRECTORY_TEST=ON >/dev/null
  ctest --preset release -R '^Package.is_built_as_a_folder'
}
