#include "sluice/session/pieces/stored_pieces.h"

#include <utility>

#include "sluice/base/text/join.h"
#include "sluice/base/text/printable.h"

namespace sluice::sessions {
namespace stored_pieces_detail {

base::Result<StoredPiece> join_piece(const std::string& name, const PiecedTensor& whole, const Piece& piece,
                                     const StoredTensors& pieces, const std::string& folder) {
  const auto found = pieces.find(piece.name);
  const std::string place =
      base::str("the tensor ", base::printable(name), " from [", base::join(piece.start, ", "), "] on");
  const std::string file = folder + piece.file;
  if (found == pieces.end() || found->second.pieces.front().file != file)
    return base::fail(Code::kDataLoss, file, ": ", place, " is missing, which the index says is here");
  const StoredTensor& stored = found->second;
  if (stored.type != whole.type || stored.sizes != piece.sizes)
    return base::fail(Code::kDataLoss, file, ": ", place, " is ", stored.type, " of ",
                      at::IntArrayRef(stored.sizes), ", the index says ", whole.type, " of ",
                      at::IntArrayRef(piece.sizes));
  StoredPiece joined = stored.pieces.front();
  joined.start = piece.start;
  joined.crc32c = piece.crc32c;
  return joined;
}

// The bytes of all tensors; the largest number if they are more.
template <typename Tensors>
uint64_t bytes_of_all(const Tensors& tensors) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    PiecedTensor one{tensor.type, tensor.sizes};
    if (__builtin_add_overflow(bytes, bytes_of(one), &bytes)) return ~uint64_t{0};
  }
  return bytes;
}

base::Status check_files(const PieceIndex& index, const StoredTensors& pieces,
                         const std::map<std::string, std::string>& saves, const std::string& path) {
  const uint64_t there = bytes_of_all(pieces);
  if (bytes_of_all(index.tensors) > there)
    return base::fail(Code::kDataLoss, path, ": the tensors have more bytes than the files, which have ",
                      there, " (cut off?)");
  std::set<std::string> known;
  for (const auto& [name, tensor] : index.tensors)
    for (const Piece& piece : tensor.pieces) known.insert(piece.name);
  for (const auto& [name, stored] : pieces) {
    const std::string& file = stored.pieces.front().file;
    const auto save = saves.find(file);
    const std::string found = save == saves.end() ? std::string() : save->second;
    if (found != index.save)
      return base::fail(Code::kDataLoss, file, " is of another save than the index ", path, " (\"",
                        base::printable_line(found), "\", not \"", base::printable_line(index.save),
                        "\"): bring the checkpoint's files back from one copy");
    if (known.count(name) == 0)
      return base::fail(Code::kDataLoss, file, ": the index does not know the tensor ", base::printable(name),
                        " in this file");
  }
  return {};
}

}  // namespace stored_pieces_detail

std::set<std::string> files_of(const PieceIndex& index) {
  std::set<std::string> files;
  for (const auto& [name, tensor] : index.tensors)
    for (const Piece& piece : tensor.pieces) files.insert(piece.file);
  return files;
}

base::Result<StoredTensors> join_pieces(const PieceIndex& index, const StoredTensors& pieces,
                                        const std::map<std::string, std::string>& saves,
                                        const std::string& path) {
  namespace detail = stored_pieces_detail;
  SLUICE_OK(detail::check_files(index, pieces, saves, path));
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  StoredTensors all;
  for (const auto& [name, whole] : index.tensors) {
    StoredTensor& tensor = all[name];
    tensor.type = whole.type;
    tensor.sizes = whole.sizes;
    for (const Piece& piece : whole.pieces) {
      SLUICE_TRY(StoredPiece joined, detail::join_piece(name, whole, piece, pieces, folder));
      tensor.pieces.push_back(std::move(joined));
    }
  }
  return all;
}

}  // namespace sluice::sessions
