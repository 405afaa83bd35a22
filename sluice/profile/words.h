// Writes a profile as readable text: how the step's time was spent.
#pragma once

#include <string>

#include "sluice/base/span.h"
#include "sluice/profile/layers.h"

namespace sluice::profile {

struct About {
  std::string host = {};
  int process = 0, processes = 1;
  std::string device = {};     // as in describe_device()
  bool device_planes = false;  // the plugin's own profiler took part
  Peaks peaks = {};            // of this process's share of a CPU
};

// Returns a page of text. Only whole steps count; without one it says so. `layers`: text about single layers.
std::string in_words(const base::SpanRecording& recording, const About& about,
                     const std::string& layers = {});

}  // namespace sluice::profile
