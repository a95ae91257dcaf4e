# Flags of our own tests, examples and benchmarks. Never part of an INTERFACE target.
function(kevin_own_program target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
    $<$<BOOL:${KEVIN_WARNINGS_AS_ERRORS}>:-Werror>)
  if(KEVIN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${KEVIN_SANITIZE} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${KEVIN_SANITIZE})
  endif()
endfunction()
