# gyre_instantiate(<target> <Model> HEADER <header> [BACKENDS cpu ...] [PRECISIONS fp32 ...])
#
# Compiles a model's network once, in a translation unit of its own that becomes part of <target>. Sources that include
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
    message(FATAL_ERROR "gyre_instantiate(${target} ${model}): say HEADER <the header that defines ${model}>, and no ${arg_UNPARSED_ARGUMENTS}")
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
  foreach(backend IN LISTS arg_BACKENDS)
    if(backend STREQUAL "cuda")
      set(extension cu)
    endif()
    foreach(precision IN LISTS arg_PRECISIONS)
      set(instance "template class gyre::network<${model}, gyre::${backend}, gyre::${precision}>;\n")
      string(APPEND declared "extern ${instance}")
      string(APPEND defined "${instance}")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/gyre_instantiated/${name}.hpp CONTENT "${declared}" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/${name}.${extension} CONTENT "${defined}" @ONLY)
  target_sources(${target} PRIVATE ${folder}/${name}.${extension})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${folder}>)
endfunction()
