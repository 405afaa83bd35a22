// profile_worker PLUGIN FILE: runs a plugin's profiler over nothing and writes the result. It is a separate
// process, because a plugin without its device may end the process.
#include <chrono>
#include <cstdio>
#include <thread>

#include "sluice/base/files/file.h"
#include "sluice/pjrt/profiler.h"

using namespace sluice;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s PLUGIN FILE\n", argv[0]);
    return 2;
  }
  try {
    auto profiler = pjrt::Profiler::of(base::value_or_throw(pjrt::Plugin::load(argv[1])));
    if (!profiler) {
      std::printf("no profiler\n");
      return 0;
    }
    base::value_or_throw(profiler->start());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    base::value_or_throw(profiler->stop());
    const std::string bytes = base::value_or_throw(profiler->collect());
    base::value_or_throw(base::write_file_atomically(argv[2], bytes));
    std::printf("%zu bytes\n", bytes.size());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
