// Tensors in pieces as tensors that are read by ranges (stored/stored_tensors.h).
#pragma once

#include <map>
#include <set>
#include <string>

#include "sluice/base/result.h"
#include "sluice/session/pieces/piece_index.h"
#include "sluice/session/stored/stored_tensors.h"

namespace sluice::sessions {

// Returns the names of the files with the pieces, which are in the folder of the index.
std::set<std::string> files_of(const PieceIndex& index);

// Returns the whole tensors of the index at `path`. `pieces` are the tensors of its files, and `saves` has
// each file's entry kSave. kDataLoss for a file of another save, and, with the file, the tensor and where the
// piece begins in it, for a piece that is missing or of another type or shape, and for a tensor that the
// index does not know.
base::Result<StoredTensors> join_pieces(const PieceIndex& index, const StoredTensors& pieces,
                                        const std::map<std::string, std::string>& saves,
                                        const std::string& path);

}  // namespace sluice::sessions
