// What a list of the cloud's things may lack.
#pragma once

#include <string>
#include <vector>

namespace sluice::provision {

struct Gaps {
  // The zones and services that did not answer, so that the list may lack things: "PROJECT ZONE", "PROJECT
  // file.googleapis.com: why".
  std::vector<std::string> unreachable;
  // "PROJECT file.googleapis.com": services that the project has not enabled, so that nothing of them is
  // listed.
  std::vector<std::string> not_enabled;

  void add(const Gaps& more) {
    unreachable.insert(unreachable.end(), more.unreachable.begin(), more.unreachable.end());
    not_enabled.insert(not_enabled.end(), more.not_enabled.begin(), more.not_enabled.end());
  }
};

}  // namespace sluice::provision
