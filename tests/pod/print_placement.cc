// Prints where this process stands: "process 2 of 4, meeting at node1:61016 (Slurm)".
#include <cstdio>

#include "sluice/base/environment.h"
#include "sluice/replica/placement.h"

int main() {
  const auto found = sluice::replica::find_placement(sluice::base::environment);
  if (!found) {
    std::fprintf(stderr, "%s\n", found.error().what());
    return 1;
  }
  if (*found) {
    const auto& place = **found;
    std::printf("process %d of %d, meeting at %s (%s)\n", place.process_id, place.processes,
                place.coordinator.c_str(), place.source.c_str());
  } else {
    std::printf("a single process\n");
  }
}
