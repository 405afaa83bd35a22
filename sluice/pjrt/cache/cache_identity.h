// Identifies what a compiled program depends on besides its text and options.
#pragma once

#include <map>
#include <span>
#include <string>

namespace sluice::pjrt {

class Client;
class Plugin;

// Returns a device as a TPU's program depends on it: its number, its kind, and where it is among the others,
// of the attributes that the plugin gives it.
std::string device_place(int id, const std::string& kind,
                         const std::map<std::string, std::string>& attributes);

// Identifies the plugin's file, versions and attributes, the platform, the devices, the processor, and the
// environment variables that XLA reads. Programs compiled under one identity must not be used under another.
// `places` describe the devices of all processes. For a TPU it is tpu_identity().
std::string cache_identity(const Client& client, std::span<const std::string> places);

// The identity of programs for TPUs at these places. Nothing of the host is in it: all hosts of a slice, a
// re-created slice, and a compiler on a machine without TPUs have the same one.
std::string tpu_identity(const Plugin& plugin, std::span<const std::string> places);

// Identifies the processor: its model and features, and the number of processors that this process may use.
std::string processor_identity();

}  // namespace sluice::pjrt
