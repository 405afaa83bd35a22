// Identifies what a compiled program depends on besides its text and options.
#pragma once

#include <string>

namespace sluice::pjrt {

class Client;

// Identifies the plugin's file, versions and attributes, the platform, the devices, the processor, and the
// environment variables that XLA reads. Programs compiled under one identity must not be used under another.
std::string cache_identity(const Client& client);
// Identifies the processor: its model and features, and the number of processors that this process may use.
std::string processor_identity();

}  // namespace sluice::pjrt
