// Which worker has which devices: worker 0 the first ones, and so on.
#pragma once

#include <vector>

namespace emulated_pod {

class Layout {
 public:
  Layout() = default;
  // How many devices each worker has.
  explicit Layout(std::vector<int> counts) : counts_(std::move(counts)) {}

  int workers() const { return static_cast<int>(counts_.size()); }
  int count(int worker) const { return counts_[static_cast<size_t>(worker)]; }
  int first(int worker) const {
    int id = 0;
    for (int w = 0; w < worker; ++w) id += count(w);
    return id;
  }
  int devices() const { return first(workers()); }
  int owner(int device) const {
    int worker = 0;
    while (device >= first(worker + 1)) ++worker;
    return worker;
  }
  // The workers that have some of these devices, in order.
  std::vector<int> owners(const std::vector<int>& devices) const {
    std::vector<bool> found(counts_.size());
    for (const int device : devices) found[static_cast<size_t>(owner(device))] = true;
    std::vector<int> workers;
    for (int w = 0; w < this->workers(); ++w) {
      if (found[static_cast<size_t>(w)]) workers.push_back(w);
    }
    return workers;
  }

 private:
  std::vector<int> counts_;
};

}  // namespace emulated_pod
