# gyre::simt runs CUDA-style kernels on the CPU; gyre::simt_race watches every access of the kernels of the targets that link it.
# Read by gyre's own CMakeLists.txt and by its package: both are built in the project that uses them, because the interpreter
# must match that project's compiler, and must not be instrumented as its kernels are. See docs/simt.md.
if(NOT TARGET gyre::simt)
  if(NOT GYRE_SIMT_SOURCE_DIR OR NOT GYRE_SIMT_INCLUDE_DIR)
    message(FATAL_ERROR "gyre_simt.cmake is included by gyre's package, not by itself")
  endif()

  add_library(gyre_simt STATIC EXCLUDE_FROM_ALL
    ${GYRE_SIMT_SOURCE_DIR}/kernel_calls.cpp
    ${GYRE_SIMT_SOURCE_DIR}/machine.cpp
    ${GYRE_SIMT_SOURCE_DIR}/memory.cpp
    ${GYRE_SIMT_SOURCE_DIR}/scheduler.cpp
    ${GYRE_SIMT_SOURCE_DIR}/warp.cpp)
  target_compile_features(gyre_simt PUBLIC cxx_std_20)
  target_include_directories(gyre_simt PUBLIC ${GYRE_SIMT_INCLUDE_DIR})
  # Optimised in every configuration: a barrier of a block of 1,024 threads changes fibers 1,024 times.
  target_compile_options(gyre_simt PRIVATE -O2)
  target_link_libraries(gyre_simt PUBLIC ${CMAKE_DL_LIBS})
  add_library(gyre::simt ALIAS gyre_simt)

  # The compiler calls the instrumentation of its thread sanitizer before each access, and that of its alignment sanitizer before
  # each misaligned one. The program is linked without these sanitizers, and the calls end in gyre's own functions.
  add_library(gyre_simt_instrumentation OBJECT EXCLUDE_FROM_ALL ${GYRE_SIMT_SOURCE_DIR}/instrumentation.cpp)
  target_link_libraries(gyre_simt_instrumentation PUBLIC gyre_simt)
  target_compile_options(gyre_simt_instrumentation PRIVATE -O2)
  add_library(gyre_simt_race INTERFACE)
  target_link_libraries(gyre_simt_race INTERFACE gyre_simt)
  target_sources(gyre_simt_race INTERFACE $<TARGET_OBJECTS:gyre_simt_instrumentation>)
  target_compile_options(gyre_simt_race INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:GYRE_WITHOUT_LINES>>,-g0,-g1> -fsanitize=thread,alignment
    $<$<CXX_COMPILER_ID:GNU>:SHELL:--param tsan-instrument-func-entry-exit=0>
    $<$<CXX_COMPILER_ID:Clang,AppleClang>:SHELL:-mllvm -tsan-instrument-func-entry-exit=0>)
  target_link_options(gyre_simt_race INTERFACE LINKER:--wrap=memcpy LINKER:--wrap=memmove LINKER:--wrap=memset)
  add_library(gyre::simt_race ALIAS gyre_simt_race)
endif()
