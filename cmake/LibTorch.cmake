include_guard(GLOBAL)
# LibTorch and the CUDA libraries it brings, as target sinter_libtorch. find_package(Torch) would demand nvcc.
#   SINTER_LIBTORCH   a folder that holds torch/ and nvidia/ (unpacked wheels), or a LibTorch folder with include/, lib/
#   SINTER_CUDA_ROOT  a folder with CUDA's include/ and lib/ or lib64/, where they do not lie beside LibTorch
# Sets SINTER_CUDA: whether this LibTorch was built with CUDA. Without it, nothing of CUDA is included or linked.
set(sinter_oldest_libtorch 2.11)
set(sinter_tested_libtorch 2.11.0 2.15.0)

set(SINTER_LIBTORCH "$ENV{SINTER_LIBTORCH}" CACHE PATH "Folder with torch/ and nvidia/, or a LibTorch folder")
set(SINTER_CUDA_ROOT "" CACHE PATH "Folder with CUDA's headers and libraries, where they do not lie beside LibTorch")
if(NOT SINTER_LIBTORCH)
  message(FATAL_ERROR "SINTER_LIBTORCH is not set: run ./dev setup, or name a LibTorch folder")
endif()
if(EXISTS ${SINTER_LIBTORCH}/torch/lib/libtorch.so)
  set(sinter_torch_root ${SINTER_LIBTORCH}/torch)
  set(sinter_nvidia_root ${SINTER_LIBTORCH}/nvidia)
elseif(EXISTS ${SINTER_LIBTORCH}/lib/libtorch.so)
  set(sinter_torch_root ${SINTER_LIBTORCH})
  set(sinter_nvidia_root ${SINTER_LIBTORCH}/../nvidia)
else()
  message(FATAL_ERROR "SINTER_LIBTORCH: no libtorch.so under '${SINTER_LIBTORCH}/torch/lib' or '${SINTER_LIBTORCH}/lib'")
endif()

# "2.11.0" from LibTorch's headers; empty where they do not say.
function(sinter_libtorch_version result)
  set(${result} "" PARENT_SCOPE)
  set(header ${sinter_torch_root}/include/torch/headeronly/version.h)
  if(NOT EXISTS ${header})
    set(header ${sinter_torch_root}/include/torch/csrc/api/include/torch/version.h)
  endif()
  if(NOT EXISTS ${header})
    return()
  endif()
  set(numbers)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS ${header} line REGEX "^#define TORCH_VERSION_${part} [0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+$" number "${line}")
    list(APPEND numbers ${number})
  endforeach()
  list(JOIN numbers "." version)
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

sinter_libtorch_version(SINTER_LIBTORCH_VERSION)
list(JOIN sinter_tested_libtorch " and " sinter_tested)
if(NOT SINTER_LIBTORCH_VERSION VERSION_GREATER_EQUAL sinter_oldest_libtorch)
  message(FATAL_ERROR "LibTorch in '${sinter_torch_root}' is version '${SINTER_LIBTORCH_VERSION}'. Sinter needs "
                      "${sinter_oldest_libtorch} or later; ${sinter_tested} are tested.")
endif()
list(GET sinter_tested_libtorch -1 sinter_newest)
if(SINTER_LIBTORCH_VERSION VERSION_GREATER sinter_newest)
  message(STATUS "LibTorch ${SINTER_LIBTORCH_VERSION} is newer than those that Sinter is tested with (${sinter_tested})")
endif()

set(SINTER_CUDA OFF)
set(SINTER_LIBTORCH_RPATH "${sinter_torch_root}/lib")
if(EXISTS ${sinter_torch_root}/lib/libtorch_cuda.so)
  set(SINTER_CUDA ON)
  set(sinter_cuda_roots ${SINTER_CUDA_ROOT} ${sinter_nvidia_root}/cu13 /usr/local/cuda)
  find_path(sinter_cuda_include cuda_runtime_api.h PATHS ${sinter_cuda_roots} PATH_SUFFIXES include
            NO_DEFAULT_PATH NO_CACHE)
  foreach(sinter_root ${sinter_cuda_roots} ${sinter_torch_root})
    file(GLOB sinter_cudart ${sinter_root}/lib*/libcudart*.so.*)
    if(sinter_cudart)
      break()
    endif()
  endforeach()
  if(NOT sinter_cuda_include OR NOT sinter_cudart)
    message(FATAL_ERROR "LibTorch in '${sinter_torch_root}' was built with CUDA, whose headers or libcudart.so were "
                        "not found. Set SINTER_CUDA_ROOT to a folder with CUDA's include/ and lib/.")
  endif()
  list(GET sinter_cudart 0 sinter_cudart)
  file(GLOB sinter_nvidia_libs ${sinter_nvidia_root}/cu13/lib ${sinter_nvidia_root}/*/lib)
  list(APPEND SINTER_LIBTORCH_RPATH ${sinter_nvidia_libs})
endif()
message(STATUS "LibTorch ${SINTER_LIBTORCH_VERSION} in ${sinter_torch_root}, CUDA: ${SINTER_CUDA}")

# LibTorch's libraries register operators when they are loaded: they stay needed though no symbol asks for them.
set(sinter_libraries torch torch_cpu c10)
if(SINTER_CUDA)
  list(APPEND sinter_libraries torch_cuda c10_cuda)
endif()
list(TRANSFORM sinter_libraries PREPEND "${sinter_torch_root}/lib/lib")
list(TRANSFORM sinter_libraries APPEND ".so")
list(JOIN sinter_libraries "," sinter_libraries)

add_library(sinter_libtorch INTERFACE)
target_include_directories(sinter_libtorch SYSTEM INTERFACE
  ${sinter_torch_root}/include ${sinter_torch_root}/include/torch/csrc/api/include ${sinter_cuda_include})
target_compile_definitions(sinter_libtorch INTERFACE _GLIBCXX_USE_CXX11_ABI=1 USE_C10D_NCCL=0)
target_link_options(sinter_libtorch INTERFACE -Wl,--allow-shlib-undefined)
# libc10.so by its name as well: from that CMake knows where a program in a build folder finds LibTorch.
target_link_libraries(sinter_libtorch INTERFACE
  "-Wl,--push-state,--no-as-needed,${sinter_libraries},--pop-state" ${sinter_torch_root}/lib/libc10.so)
if(SINTER_CUDA)
  target_link_libraries(sinter_libtorch INTERFACE "-Wl,--push-state,--as-needed,${sinter_cudart},--pop-state")
endif()

# CUDA headers only (driver API, NVRTC): both libraries are opened at run time.
add_library(sinter_cuda_headers INTERFACE)
target_include_directories(sinter_cuda_headers SYSTEM INTERFACE ${sinter_cuda_include})
