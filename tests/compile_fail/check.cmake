# cmake -DCOMMAND=compiler|options... -DFILE=mistake.cpp -P check.cmake
#
# The file must fail to compile, and each sentence of its lines `// expect: <sentence>` must stand in an error of the
# compiler. With GYRE_COMPILE_PASS defined the file leaves its mistake out and must compile: it failed for no other reason.
string(REPLACE "|" ";" COMMAND "${COMMAND}")
get_filename_component(name ${FILE} NAME_WE)

file(STRINGS ${FILE} sentences REGEX "^// expect: ")
if(NOT sentences)
  message(FATAL_ERROR "REJECTED ${name}: it has no line '// expect: <sentence>'")
endif()

execute_process(COMMAND ${COMMAND} -DGYRE_COMPILE_PASS ${FILE} RESULT_VARIABLE result ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "REJECTED ${name}: with GYRE_COMPILE_PASS it must compile, but:\n${output}")
endif()

execute_process(COMMAND ${COMMAND} ${FILE} RESULT_VARIABLE result ERROR_VARIABLE output)
if(result EQUAL 0)
  message(FATAL_ERROR "REJECTED ${name}: it compiles")
endif()
string(REGEX MATCHALL "error: [^\n]*" errors "${output}")
foreach(sentence IN LISTS sentences)
  string(REGEX REPLACE "^// expect: " "" sentence "${sentence}")
  string(FIND "${errors}" "${sentence}" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "REJECTED ${name}: no error says '${sentence}':\n${output}")
  endif()
endforeach()
