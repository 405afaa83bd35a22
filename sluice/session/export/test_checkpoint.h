// Checkpoints for tests: of one file, and in pieces as several processes write them.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/session/files/tensor_file.h"
#include "sluice/session/pieces/piece_index.h"

namespace sluice::sessions::test {

inline void write_text(const std::string& path, const std::string& text) {
  base::value_or_throw(base::write_file_atomically(path, text));
}

// Writes a checkpoint with one file of weights.
inline void write_one_file(const std::string& folder, const NamedTensors& tensors) {
  base::value_or_throw(base::make_directories(folder));
  base::value_or_throw(write_safetensors(base::join_path(folder, "model.safetensors"), tensors));
  write_text(base::join_path(folder, "state.json"), "{}");
}

// Writes the weights as `files` processes do: the tensors lie along their rows, along their columns, or whole
// in one of the files, in turns.
inline void write_pieces(const std::string& folder, const NamedTensors& tensors, int files) {
  base::value_or_throw(base::make_directories(folder));
  PieceIndex index;
  index.save = "a save";
  std::vector<NamedTensors> parts(static_cast<size_t>(files));
  size_t turn = 0;
  for (const auto& [name, tensor] : tensors) {
    PiecedTensor& whole = index.tensors[name];
    whole.type = tensor.scalar_type();
    whole.sizes = tensor.sizes().vec();
    const auto dim = static_cast<int64_t>(turn++ % 3);
    const bool cut = dim < tensor.dim() && tensor.size(dim) >= files;
    for (int f = 0; f < files; ++f) {
      std::vector<int64_t> start(whole.sizes.size(), 0);
      at::Tensor piece = tensor;
      if (cut) {
        start[static_cast<size_t>(dim)] = f * tensor.size(dim) / files;
        const int64_t end = (f + 1) * tensor.size(dim) / files;
        piece = tensor.slice(dim, start[static_cast<size_t>(dim)], end).contiguous();
      } else if (f != static_cast<int>(turn) % files) {
        continue;
      }
      whole.pieces.push_back({piece_name(name, start, piece.sizes().vec(), whole.sizes), start,
                              piece.sizes().vec(), part_name(kModel, f, files),
                              base::crc32c(piece.const_data_ptr(), piece.nbytes())});
      parts[static_cast<size_t>(f)].emplace_back(whole.pieces.back().name, piece);
    }
  }
  for (int f = 0; f < files; ++f)
    base::value_or_throw(write_safetensors(base::join_path(folder, part_name(kModel, f, files)),
                                           parts[static_cast<size_t>(f)], {{kSave, index.save}}));
  write_text(base::join_path(folder, index_name(kModel)), base::value_or_throw(index_text(index)));
  write_text(base::join_path(folder, "state.json"), "{}");
}

// Compares types, shapes and bytes; the order may differ.
inline void expect_same(const NamedTensors& found, const NamedTensors& wanted) {
  EXPECT_EQ(found.size(), wanted.size());
  const std::map<std::string, at::Tensor> by_name(found.begin(), found.end());
  for (const auto& [name, tensor] : wanted) {
    const auto place = by_name.find(name);
    ASSERT_NE(place, by_name.end()) << name;
    const at::Tensor other = place->second.contiguous(), own = tensor.contiguous();
    EXPECT_EQ(other.scalar_type(), own.scalar_type()) << name;
    EXPECT_EQ(other.sizes(), own.sizes()) << name;
    ASSERT_EQ(other.nbytes(), own.nbytes()) << name;
    EXPECT_TRUE(own.nbytes() == 0 ||
                std::memcmp(other.const_data_ptr(), own.const_data_ptr(), own.nbytes()) == 0)
        << name;
  }
}

}  // namespace sluice::sessions::test
