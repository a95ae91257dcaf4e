# The library's targets. Every header is listed in the target that may include it (tests/house checks that none is missing).
#   kevin::kevin  floors 0-2, standard library only
#   kevin::eval   processes, sandbox, compilers: Boost.Process headers
#   kevin::torch  judge, tasks, trainer, policies: LibTorch, nlohmann-json; brings the other two

include(cmake/KevinHeaders.cmake)

function(kevin_header_library target name headers)
  add_library(${target} INTERFACE)
  add_library(kevin::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} INTERFACE cxx_std_20)
  # Data that a header includes in the middle of a declaration does not compile alone and is not verified.
  set(data ${headers})
  list(FILTER data INCLUDE REGEX "\\.inc$")
  list(FILTER headers EXCLUDE REGEX "\\.inc$")
  target_sources(${target} INTERFACE FILE_SET HEADERS BASE_DIRS include FILES ${headers})
  if(data)
    target_sources(${target} INTERFACE FILE_SET data TYPE HEADERS BASE_DIRS include FILES ${data})
    set_target_properties(${target} PROPERTIES INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
  endif()
endfunction()

kevin_header_library(kevin kevin "${KEVIN_CORE_HEADERS}")
target_link_libraries(kevin INTERFACE Threads::Threads)

if(KEVIN_BOOST_INCLUDE_DIR)
  kevin_header_library(kevin_eval eval "${KEVIN_EVAL_HEADERS}")
  target_link_libraries(kevin_eval INTERFACE kevin Threads::Threads ${CMAKE_DL_LIBS})
  if(NOT KEVIN_BOOST_INCLUDE_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    target_include_directories(kevin_eval SYSTEM INTERFACE $<BUILD_INTERFACE:${KEVIN_BOOST_INCLUDE_DIR}>)
  endif()
endif()

if(KEVIN_WITH_TORCH)
  kevin_header_library(kevin_torch torch "${KEVIN_TORCH_HEADERS}")
  # LibTorch's wheels export pieces of their own std::filesystem; the program's standard library has to come before them.
  target_link_libraries(kevin_torch INTERFACE kevin_eval nlohmann_json::nlohmann_json $<$<CXX_COMPILER_ID:GNU>:stdc++> torch)
endif()
