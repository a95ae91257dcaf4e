# Finds what the optional targets need. Nothing is downloaded here.
# kevin::kevin needs none of it; kevin::eval is made when Boost is there; kevin::torch when KEVIN_WITH_TORCH asks for it.

# What is found here is linked by whoever brings kevin in by add_subdirectory or FetchContent, from another folder.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)

find_package(Threads REQUIRED)

# Boost.Process v2 as headers: 1.80 and later. BOOST_ROOT or CMAKE_PREFIX_PATH name other places.
find_path(KEVIN_BOOST_INCLUDE_DIR boost/process/v2/process.hpp
  HINTS "${BOOST_ROOT}" "$ENV{BOOST_ROOT}" PATH_SUFFIXES include
  DOC "Folder that holds boost/process/v2 (Boost 1.80 or later)")
mark_as_advanced(KEVIN_BOOST_INCLUDE_DIR)

if(KEVIN_WITH_TORCH)
  if(NOT KEVIN_BOOST_INCLUDE_DIR)
    message(FATAL_ERROR "kevin: boost/process/v2/process.hpp was not found. Install Boost 1.80 or later "
      "(Debian 12: libboost1.81-dev) or pass -DBOOST_ROOT=/path/to/boost, or switch off KEVIN_WITH_TORCH.")
  endif()
  find_package(nlohmann_json QUIET)
  if(NOT nlohmann_json_FOUND)
    message(FATAL_ERROR "kevin: nlohmann-json was not found. Install it (Debian: nlohmann-json3-dev) or switch off KEVIN_WITH_TORCH.")
  endif()
  # Twice found is a known fault of TorchConfig (pytorch issues 118862, executorch 8407): hence the guard.
  if(NOT TARGET torch)
    find_package(Torch QUIET)
    if(NOT Torch_FOUND AND PROJECT_IS_TOP_LEVEL)
      # A pip wheel brings its own TorchConfig.cmake; ask it where.
      find_program(KEVIN_PYTHON NAMES python3)
      if(KEVIN_PYTHON)
        execute_process(COMMAND "${KEVIN_PYTHON}" -c "import torch; print(torch.utils.cmake_prefix_path)"
          OUTPUT_VARIABLE kevin_torch_prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE kevin_python_failed)
        if(NOT kevin_python_failed)
          list(APPEND CMAKE_PREFIX_PATH "${kevin_torch_prefix}")
          find_package(Torch QUIET)
        endif()
      endif()
    endif()
  endif()
  if(NOT TARGET torch)
    message(FATAL_ERROR "kevin: LibTorch was not found. One of: Debian's libtorch-dev (with libopenblas0-pthread); a pip wheel "
      "(pip install torch; it is found through python3); a libtorch archive with -DCMAKE_PREFIX_PATH=/absolute/path/to/libtorch. "
      "Or switch off KEVIN_WITH_TORCH.")
  endif()
endif()
