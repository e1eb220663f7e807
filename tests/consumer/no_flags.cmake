# gyre::gyre must not put flags, definitions or warnings into a user's build.
foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS LINK_OPTIONS)
  get_target_property(value gyre::gyre INTERFACE_${property})
  if(value)
    message(FATAL_ERROR "gyre::gyre exports ${property}: ${value}")
  endif()
endforeach()
