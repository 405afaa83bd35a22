// The index of tensors that are pieces in several safetensors files.
//
// It is JSON in the form of Hugging Face's model.safetensors.index.json: `weight_map` has the file of each
// piece. Sluice's own member `tensors` says which pieces are a tensor. A piece that is all of a tensor has
// the tensor's name; a block is called NAME@ROW,COLUMN by its first element. Each file has the index's `save`
// in its metadata, so that a file of another save is found.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/result.h"

namespace sluice::sessions {

struct Piece {
  std::string name;
  std::vector<int64_t> start, sizes;
  std::string file;                     // without a folder
  std::optional<uint32_t> crc32c = {};  // of the elements' bytes, row-major
};

// Its pieces form a grid: they cover the tensor and do not overlap.
struct PiecedTensor {
  c10::ScalarType type = c10::ScalarType::Undefined;
  std::vector<int64_t> sizes;
  std::vector<Piece> pieces = {};
};
uint64_t bytes_of(const PiecedTensor& tensor);

struct PieceIndex {
  std::string save;  // an arbitrary text, different for each save
  std::map<std::string, PiecedTensor> tensors;
};

// The two kinds of a checkpoint's tensors.
constexpr const char *kModel = "model", *kState = "state";
struct CheckpointPieces {
  PieceIndex model, state;
};

// Returns the name of a piece of the tensor `name`.
std::string piece_name(const std::string& name, const std::vector<int64_t>& start,
                       const std::vector<int64_t>& sizes, const std::vector<int64_t>& whole);
// Returns "model-00002-of-00004.safetensors" for ("model", 1, 4).
std::string part_name(const std::string& kind, int process, int processes);
// Returns "model.safetensors.index.json" for "model".
std::string index_name(const std::string& kind);
// The entry of a part's metadata that holds PieceIndex::save.
constexpr const char* kSave = "sluice.save";

// Fails with kInvalidArgument if two pieces have one name, and for a name that is not UTF-8.
base::Result<std::string> index_text(const PieceIndex& index);
// Reads the text of a file called `path`; kDataLoss if it is not what index_text() returns: for each tensor,
// pieces that form a grid, in files of the same folder.
base::Result<PieceIndex> parse_index(const std::string& text, const std::string& path);

// Returns the files of a checkpoint in pieces that are not among `names`, which has at least one of its
// parts or indexes; the number of parts is in their names. Empty: it is whole.
std::vector<std::string> missing_parts(const std::vector<std::string>& names);
// Returns whether a folder with these files has a checkpoint in pieces.
bool has_parts(const std::vector<std::string>& names);

}  // namespace sluice::sessions
