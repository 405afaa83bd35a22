#include "sluice/session/pieces/piece_writers.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <tuple>

namespace sluice::sessions {
namespace piece_writers_detail {

// Pieces have at most this part of what a process should write, if they can be cut.
constexpr uint64_t kParts = 8;

uint64_t bytes_of(const std::vector<int64_t>& sizes, at::ScalarType type) {
  uint64_t bytes = c10::elementSize(type);
  for (const int64_t size : sizes) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

// How the blocks of a value are cut: each into the same number of parts of one dimension.
struct Cut {
  size_t dim = 0;
  int64_t parts = 1;
};

// Returns the cut after which a block has at most `most` bytes: of the first dimension that is long enough,
// else of the longest one.
Cut cut_of(const device::Blocks& value, uint64_t most) {
  uint64_t largest = 0;
  for (const device::BlockPlace& place : value.places) {
    if (place.processes.size() == 1) return {};  // that process writes it
    largest = std::max(largest, bytes_of(place.sizes, value.type));
  }
  if (largest <= most) return {};
  const auto parts = static_cast<int64_t>((largest + most - 1) / most);
  Cut cut;
  for (size_t d = 0; d < value.sizes.size() && cut.parts < parts; ++d) {
    int64_t possible = parts;
    for (const device::BlockPlace& place : value.places) possible = std::min(possible, place.sizes[d]);
    if (possible > cut.parts) cut = {d, possible};
  }
  return cut;
}

std::vector<WrittenPiece> pieces_of(const device::Blocks& value, const Cut& cut) {
  std::vector<WrittenPiece> pieces;
  for (size_t block = 0; block < value.places.size(); ++block) {
    const device::BlockPlace& place = value.places[block];
    for (int64_t part = 0; part < cut.parts; ++part) {
      WrittenPiece piece{block, place.start, place.sizes, place.processes.front()};
      if (cut.parts > 1) {
        const int64_t first = place.sizes[cut.dim] * part / cut.parts;
        piece.start[cut.dim] += first;
        piece.sizes[cut.dim] = place.sizes[cut.dim] * (part + 1) / cut.parts - first;
      }
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

}  // namespace piece_writers_detail

std::vector<std::vector<WrittenPiece>> divide_among(const std::vector<device::Blocks>& values,
                                                    int processes) {
  namespace detail = piece_writers_detail;
  uint64_t total = 0;
  for (const device::Blocks& value : values)
    for (const device::BlockPlace& place : value.places) total += detail::bytes_of(place.sizes, value.type);
  const uint64_t max_bytes = std::max<uint64_t>(total / static_cast<uint64_t>(processes) / detail::kParts, 1);
  // The pieces that more than one process may write, and what each must write anyway.
  struct Choice {
    uint64_t bytes;
    WrittenPiece* piece;
    const std::vector<int>* holders;
  };
  std::vector<std::vector<WrittenPiece>> all;
  std::vector<Choice> choices;
  std::vector<uint64_t> written(static_cast<size_t>(processes), 0);
  for (const device::Blocks& value : values)
    all.push_back(detail::pieces_of(value, detail::cut_of(value, max_bytes)));
  for (size_t i = 0; i < values.size(); ++i)
    for (WrittenPiece& piece : all[i]) {
      const std::vector<int>& holders = values[i].places[piece.block].processes;
      const uint64_t bytes = detail::bytes_of(piece.sizes, values[i].type);
      if (holders.size() > 1)
        choices.push_back({bytes, &piece, &holders});
      else
        written[static_cast<size_t>(piece.process)] += bytes;
    }
  // The largest piece goes first, always to the process with the fewest bytes so far.
  std::stable_sort(choices.begin(), choices.end(),
                   [](const Choice& a, const Choice& b) { return a.bytes > b.bytes; });
  const auto bytes_by = [&](int process) -> uint64_t& { return written[static_cast<size_t>(process)]; };
  for (const Choice& choice : choices) {
    choice.piece->process = *std::min_element(
        choice.holders->begin(), choice.holders->end(),
        [&](int a, int b) { return std::tuple(bytes_by(a), a) < std::tuple(bytes_by(b), b); });
    bytes_by(choice.piece->process) += choice.bytes;
  }
  return all;
}

}  // namespace sluice::sessions
