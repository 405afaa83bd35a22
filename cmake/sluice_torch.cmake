# sluice_find_torch([hint …]): the target sluice::torch, and SLUICE_TORCH_ROOT and SLUICE_TORCH_VERSION.
#
# LibTorch is looked for in Torch_DIR, in the environment's TORCH_DIR, in CMAKE_PREFIX_PATH and then in the hints.
# Its own CMake package is read for its version only: running it would add defines for headers that the wheel lacks,
# search for Python and CUDA, and put folders that do not exist on the link line. Used by the build and, installed
# beside sluiceConfig.cmake, by whoever finds the package.
function(sluice_find_torch)
  set(roots)
  if(Torch_DIR)
    list(APPEND roots "${Torch_DIR}/../../..")
  endif()
  foreach(prefix $ENV{TORCH_DIR} ${CMAKE_PREFIX_PATH} $ENV{CMAKE_PREFIX_PATH} ${ARGN})
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
          INTERFACE_LINK_LIBRARIES "${root}/lib/libtorch.so;${root}/lib/libtorch_cpu.so;${root}/lib/libc10.so")
      endif()
      return()
    endif()
  endforeach()
  set(SLUICE_TORCH_ROOT "" PARENT_SCOPE)
endfunction()

set(SLUICE_TORCH_MISSING "LibTorch 2.11 to 2.13 was not found: set TORCH_DIR (environment) or CMAKE_PREFIX_PATH to \
the folder with its include, lib and share, or run scripts/setup.")
