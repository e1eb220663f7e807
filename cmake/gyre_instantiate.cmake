# gyre_instantiate(<target> <Model> HEADER <header> [BACKENDS cpu ...] [PRECISIONS fp32 ...])
#
# Compiles a model's passes once, in a translation unit of its own that becomes part of <target>. Sources that include
# <gyre_instantiated/<Model>.hpp> instead of <header> see `extern template` and do not compile it again.
#
#   gyre_instantiate(chat Huginn HEADER models/huginn.hpp BACKENDS cpu)
#   // main.cpp
#   #include <gyre_instantiated/Huginn.hpp>
#
# <header> is found like any include of <target>, or is relative to the current source folder. <Model> may be qualified
# (mine::Huginn); the file then has its last part as name.
function(gyre_instantiate target model)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "HEADER" "BACKENDS;PRECISIONS")
  if(NOT arg_HEADER OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gyre_instantiate(${target} ${model}): say HEADER <the header that defines ${model}>"
      " [BACKENDS ...] [PRECISIONS ...], nothing else; got ${ARGN}")
  endif()
  if(NOT arg_BACKENDS)
    set(arg_BACKENDS cpu)
  endif()
  if(NOT arg_PRECISIONS)
    set(arg_PRECISIONS fp32)
  endif()
  set(header ${arg_HEADER})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${header})
    set(header ${CMAKE_CURRENT_SOURCE_DIR}/${header})
  endif()

  string(REGEX REPLACE ".*::" "" name ${model})
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/gyre_instantiate/${target})
  set(declared "#pragma once\n\n#include <${header}>\n\n")
  set(defined "#include <gyre_instantiated/${name}.hpp>\n\n")
  set(extension cpp)
  foreach(backend_name IN LISTS arg_BACKENDS)
    if(backend_name STREQUAL "cuda")
      set(extension cu)
    endif()
    foreach(precision_name IN LISTS arg_PRECISIONS)
      set(backend gyre::${backend_name})
      set(precision gyre::${precision_name})
      file(READ ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/gyre_instantiation.hpp.in instances)
      set(extern "extern ")
      string(CONFIGURE "${instances}" text @ONLY)
      string(APPEND declared "${text}")
      set(extern "")
      string(CONFIGURE "${instances}" text @ONLY)
      string(APPEND defined "${text}")
    endforeach()
  endforeach()
  # Written only when they change, so that configuring again compiles nothing.
  file(CONFIGURE OUTPUT ${folder}/gyre_instantiated/${name}.hpp CONTENT "${declared}" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/${name}.${extension} CONTENT "${defined}" @ONLY)
  target_sources(${target} PRIVATE ${folder}/${name}.${extension})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${folder}>)
endfunction()
