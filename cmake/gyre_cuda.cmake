# gyre::cuda: what sources link that use backend `cuda`. Read by gyre's own CMakeLists.txt and by its package; there where a CUDA
# toolkit is found. The language is the project's: project(... LANGUAGES CXX CUDA), and so are CMAKE_CUDA_ARCHITECTURES (80 is the
# least) and CMAKE_CUDA_RUNTIME_LIBRARY, by which CMake links the runtime.

# CMake before 3.26 does not know what nvcc calls C++20, and then refuses any target whose CXX_STANDARD is 20.
if(CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA" AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.0 AND
    NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
  list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
endif()

if(NOT TARGET gyre::cuda)
  find_package(CUDAToolkit 12.0 QUIET)
  if(CUDAToolkit_FOUND AND TARGET CUDA::cublas)
    add_library(gyre_cuda INTERFACE)
    target_link_libraries(gyre_cuda INTERFACE gyre::gyre CUDA::cublas)
    # The library's constexpr functions serve kernels too.
    target_compile_options(gyre_cuda INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20>
      $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:--expt-relaxed-constexpr>)
    add_library(gyre::cuda ALIAS gyre_cuda)
  endif()
endif()
