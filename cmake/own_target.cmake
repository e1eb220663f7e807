# Flags of gyre's own tests, examples and benchmarks. Nothing here reaches a user's program.

# gyre_own_target(target [PORTABLE]): warnings, sanitizers and, unless PORTABLE, this machine's instruction set.
function(gyre_own_target target)
  cmake_parse_arguments(PARSE_ARGV 1 own "PORTABLE" "" "")
  target_link_libraries(${target} PRIVATE gyre::gyre)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wconversion;-Wshadow;-Wpedantic;$<$<BOOL:${GYRE_WERROR}>:-Werror>>"
    # What nvcc gives its host compiler is not what we wrote: -Wconversion and -Wpedantic would speak of its code.
    "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-Wall,-Wextra;$<$<BOOL:${GYRE_WERROR}>:-Werror=all-warnings>>")
  if(GYRE_NATIVE AND NOT own_PORTABLE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-march=native>)
  endif()
  if(GYRE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${GYRE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${GYRE_SANITIZE})
  endif()
endfunction()
