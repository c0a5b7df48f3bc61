# LibTorch, the CUDA libraries it brings and LLVM, as imported targets. find_package(Torch) would demand nvcc.
# SINTER_LIBTORCH is a folder that holds torch/ and nvidia/ (unpacked wheels), or a LibTorch folder with include/ and lib/.
set(SINTER_LIBTORCH "$ENV{SINTER_LIBTORCH}" CACHE PATH "Folder with torch/ and nvidia/, or a LibTorch folder")
if(NOT SINTER_LIBTORCH)
  message(FATAL_ERROR "SINTER_LIBTORCH is not set: run ./dev setup, or name a LibTorch folder")
endif()
if(EXISTS ${SINTER_LIBTORCH}/torch/lib/libtorch.so)
  set(torch_root ${SINTER_LIBTORCH}/torch)
  set(cuda_root ${SINTER_LIBTORCH}/nvidia/cu13)
else()
  set(torch_root ${SINTER_LIBTORCH})
  set(cuda_root ${SINTER_LIBTORCH}/../nvidia/cu13)
endif()

add_library(sinter_libtorch INTERFACE)
target_include_directories(sinter_libtorch SYSTEM INTERFACE
  ${torch_root}/include ${torch_root}/include/torch/csrc/api/include ${cuda_root}/include)
target_compile_definitions(sinter_libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=1 USE_C10D_NCCL=0)
target_link_directories(sinter_libtorch INTERFACE ${torch_root}/lib ${cuda_root}/lib)
target_link_options(sinter_libtorch INTERFACE -Wl,--as-needed -Wl,--allow-shlib-undefined)
# LibTorch's libraries register operators when they are loaded: they stay needed though no symbol asks for them.
target_link_libraries(sinter_libtorch INTERFACE
  "-Wl,--push-state,--no-as-needed,-ltorch,-ltorch_cpu,-ltorch_cuda,-lc10,-lc10_cuda,--pop-state"
  ${cuda_root}/lib/libcudart.so.13)
file(GLOB nvidia_libs ${cuda_root}/lib ${SINTER_LIBTORCH}/nvidia/*/lib)
list(JOIN nvidia_libs ":" nvidia_rpath)
set(CMAKE_BUILD_RPATH "${torch_root}/lib:${nvidia_rpath}")

# CUDA headers only (driver API, NVRTC): both libraries are opened at run time.
add_library(sinter_cuda_headers INTERFACE)
target_include_directories(sinter_cuda_headers SYSTEM INTERFACE ${cuda_root}/include)
