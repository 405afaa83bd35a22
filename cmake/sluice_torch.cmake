# sluice_find_torch([ONLY] [hint …]): the target sluice::torch, and SLUICE_TORCH_ROOT and SLUICE_TORCH_VERSION.
#
# LibTorch is looked for in Torch_DIR, in the environment's TORCH_DIR, in CMAKE_PREFIX_PATH and then in the hints;
# with ONLY, in the hints alone.
# Its own CMake package is read for its version only: running it would add defines for headers that the wheel lacks,
# search for Python and CUDA, and put folders that do not exist on the link line. Used by the build and, installed
# beside sluiceConfig.cmake, by whoever finds the package.
function(sluice_find_torch)
  cmake_parse_arguments(PARSE_ARGV 0 torch ONLY "" "")
  set(prefixes ${torch_UNPARSED_ARGUMENTS})
  set(roots)
  if(NOT torch_ONLY)
    if(Torch_DIR)
      list(APPEND roots "${Torch_DIR}/../../..")
    endif()
    list(PREPEND prefixes $ENV{TORCH_DIR} ${CMAKE_PREFIX_PATH} $ENV{CMAKE_PREFIX_PATH})
  endif()
  foreach(prefix ${prefixes})
    list(APPEND roots "${prefix}" "${prefix}/torch" "${prefix}/libtorch")
  endforeach()
  foreach(root ${roots})
    set(version_file "${root}/share/cmake/Torch/TorchConfigVersion.cmake")
    if(EXISTS "${version_file}" AND EXISTS "${root}/lib/libtorch_cpu.so")
      include("${version_file}")
      get_filename_component(root "${root}" ABSOLUTE)
      set(SLUICE_TORCH_ROOT "${root}" PARENT_SCOPE)
      set(SLUICE_TORCH_VERSION "${PACKAGE_VERSION}" PARENT_SCOPE)
      if(NOT TARGET sluice::torch)
        add_library(sluice::torch INTERFACE IMPORTED GLOBAL)
        set_target_properties(sluice::torch PROPERTIES
          INTERFACE_INCLUDE_DIRECTORIES "${root}/include;${root}/include/torch/csrc/api/include"
          INTERFACE_LINK_LIBRARIES "${root}/lib/libtorch_cpu.so;${root}/lib/libc10.so")
      endif()
      return()
    endif()
  endforeach()
  set(SLUICE_TORCH_ROOT "" PARENT_SCOPE)
endfunction()

# sluice_check_machine(result file): an error in words where the ELF file is of another machine type than the one that
# is built for, else nothing. A linker says so too, but not what to do.
function(sluice_check_machine result file)
  set(${result} "" PARENT_SCOPE)
  file(READ "${file}" machine OFFSET 18 LIMIT 2 HEX)
  set(names 3e00 x86_64 b700 aarch64)
  list(FIND names "${machine}" at)
  if(at GREATER -1 AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    math(EXPR at "${at} + 1")
    list(GET names ${at} name)
    if(NOT name STREQUAL CMAKE_SYSTEM_PROCESSOR)
      set(${result} "${file} is for ${name}, this build for ${CMAKE_SYSTEM_PROCESSOR}: set TORCH_DIR to a LibTorch for \
${CMAKE_SYSTEM_PROCESSOR}, for example that of the Python package torch (docs/install.md)" PARENT_SCOPE)
    endif()
  endif()
endfunction()

set(SLUICE_TORCH_MISSING "LibTorch 2.11 to 2.14 was not found: set TORCH_DIR (environment) or CMAKE_PREFIX_PATH to \
the folder with its include, lib and share, or run scripts/setup.")
