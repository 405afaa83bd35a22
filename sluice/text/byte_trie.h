// A trie over bytes that finds which of its texts begin at a given place.
#pragma once

#include <string_view>

#include "sluice/text/flat_map.h"

namespace sluice::text {

// Threads: any number of them may search.
class ByteTrie {
 public:
  // Adds a non-empty text, with a value below 2^31. A later text replaces an equal one.
  void add(std::string_view text, std::uint32_t value) {
    begins_[static_cast<unsigned char>(text[0])] = true;
    std::uint64_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      Node& next = edges_[node << 8 | static_cast<unsigned char>(text[i])];
      if (next.node == 0) next.node = ++nodes_;
      node = next.node;
      if (i + 1 < text.size()) continue;
      next.value = value;
      next.ends = true;
    }
  }
  bool empty() const { return nodes_ == 0; }
  // Whether a text begins with this byte.
  bool begins(char byte) const { return begins_[static_cast<unsigned char>(byte)]; }
  // Calls found(length, value) for each text that begins at `at`, the shortest first.
  template <typename Found>
  void each(std::string_view text, std::size_t at, Found&& found) const {
    std::uint64_t node = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
      const Node* const next = edges_.find(node << 8 | static_cast<unsigned char>(text[i]));
      if (next == nullptr) return;
      if (next->ends) found(i + 1 - at, next->value);
      node = next->node;
    }
  }

 private:
  struct Node {
    std::uint32_t node = 0;
    std::uint32_t value : 31 = 0;
    std::uint32_t ends : 1 = 0;
  };

  FlatMap<Node> edges_;  // of node and byte
  std::uint32_t nodes_ = 0;
  bool begins_[256] = {};
};

}  // namespace sluice::text
