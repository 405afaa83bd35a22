// A profile in words: what the step's time went into.
#pragma once

#include <string>

#include "sluice/base/span.h"
#include "sluice/profile/layers.h"

namespace sluice::profile {

struct About {
  std::string host = {};
  int process = 0, processes = 1;
  std::string device = {};     // as describe_device() says it
  bool device_planes = false;  // the plugin's own profiler took part
  Peaks peaks = {};            // of this process's share of a CPU
};

// A page of text. Only whole steps count; without one it says so. `layers`: what is said of single layers.
std::string in_words(const base::SpanRecording& recording, const About& about,
                     const std::string& layers = {});

}  // namespace sluice::profile
