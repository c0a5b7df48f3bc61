option(SINTER_UNITY "Compile files that read the same large headers together; off, a change recompiles one file" ON)

# Compiles the named sources of a target as one translation unit: sinter_unity(sinter replay session.cpp way.cpp).
# Reading LibTorch's headers takes longer than compiling a file of ours. A file belongs to one group by name, so that a
# new file changes no other group.
function(sinter_unity target group)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${SINTER_UNITY} UNITY_BUILD_MODE GROUP)
  set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
endfunction()

# The same for all sources of a target, eight at a time in their order: for smaller headers, where names matter less.
function(sinter_unity_batches target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${SINTER_UNITY} UNITY_BUILD_BATCH_SIZE 8)
endfunction()
