# Flags of gyre's own tests, examples and benchmarks. Nothing here reaches a user's program.

# gyre_own_target(target [PORTABLE]): warnings, sanitizers and, unless PORTABLE, this machine's instruction set.
function(gyre_own_target target)
  cmake_parse_arguments(PARSE_ARGV 1 own "PORTABLE" "" "")
  target_link_libraries(${target} PRIVATE gyre::gyre)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow -Wpedantic $<$<BOOL:${GYRE_WERROR}>:-Werror>)
  if(GYRE_NATIVE AND NOT own_PORTABLE)
    target_compile_options(${target} PRIVATE -march=native)
  endif()
  if(GYRE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${GYRE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${GYRE_SANITIZE})
  endif()
endfunction()
