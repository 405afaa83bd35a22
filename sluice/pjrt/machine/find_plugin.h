// Where plugins are found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::pjrt {

struct PluginFile {
  std::string name;  // "cpu", "tpu", "cuda", or the file's own
  std::string path;  // absolute
};

// The file for "cpu", "tpu", "cuda" or a path. A name is looked for in the folders; for "tpu"
// $TPU_LIBRARY_PATH comes first. What is found by a name must be a file that nobody but this user and root
// may have written (base/trusted_file.h), else kPermissionDenied.
base::Result<PluginFile> find_plugin(const std::string& wanted, const std::vector<std::string>& folders);

// Where plugins may lie, in order: the project's own dependencies ($SLUICE_DEPS, the build's .deps,
// ../lib/sluice beside the program, sluice beside libsluice.so); /lib and /usr/lib, where TPU
// machines have libtpu.so; the folders of Python packages ($VIRTUAL_ENV, $CONDA_PREFIX, $PYTHONPATH, the home
// of the python3 in $PATH,
// ~/.local, /usr/local, /usr). Python is not run.
std::vector<std::string> plugin_search_folders();

// The CUDA plugin needs NVIDIA's libraries, which come as Python packages beside it (…/nvidia/*/lib): loads
// them so that it finds them. Does nothing where that folder is not.
void preload_nvidia_libraries(const std::string& plugin_path);
// The folder of a CUDA with what XLA's compiler for GPUs reads and runs: nvvm/libdevice/libdevice.10.bc and
// bin/ptxas. Looked for in $CUDA_HOME, $CUDA_PATH, the packages beside the plugin (nvidia-cuda-nvcc brings
// both), the CUDA whose ptxas is in $PATH, and /usr/local/cuda. Nothing where there is none.
std::optional<std::string> find_cuda_tools(const std::string& plugin_path);

}  // namespace sluice::pjrt
