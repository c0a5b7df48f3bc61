include_guard(GLOBAL)
# LLVM 19, static, for the CPU back end and for reading line tables: target sinter_llvm. Only runtime/llvm_jit.cpp and runtime/source_frames.cpp see its headers.
find_package(LLVM 19.1 CONFIG REQUIRED)
llvm_map_components_to_libnames(llvm_libraries orcjit x86codegen x86asmparser irreader passes symbolize)

add_library(sinter_llvm INTERFACE)
target_include_directories(sinter_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(llvm_definitions UNIX_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(sinter_llvm INTERFACE ${llvm_definitions})
target_link_libraries(sinter_llvm INTERFACE ${llvm_libraries} ${CMAKE_DL_LIBS})
