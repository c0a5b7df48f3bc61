# Run by `cmake --install`. Headers of the compiler that the public ones include, compiler/support/NAME.h in the sources,
# become sinter/support/NAME.h, so that a program has one include folder. Given: api, support, include_dir.
set(root "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${include_dir}/sinter")
file(REMOVE_RECURSE "${root}")

# Installs a header, and those of the compiler that it includes.
function(install_header from to)
  file(READ "${from}" text)
  string(REGEX MATCHALL "#include \"compiler/support/[a-z_]+[.]h\"" included "${text}")
  string(REPLACE "#include \"compiler/support/" "#include \"sinter/support/" text "${text}")
  file(WRITE "${root}/${to}" "${text}")
  message(STATUS "Installing: ${root}/${to}")
  foreach(line IN LISTS included)
    string(REGEX MATCH "[a-z_]+[.]h" name "${line}")
    if(NOT EXISTS "${root}/support/${name}")
      install_header("${support}/${name}" "support/${name}")
    endif()
  endforeach()
endfunction()

file(GLOB_RECURSE headers RELATIVE "${api}" "${api}/*.h")
foreach(header IN LISTS headers)
  install_header("${api}/${header}" "${header}")
endforeach()
