#include "sluice/session/stored/stored_tensors.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sluice/base/text/strings.h"
#include "sluice/cloud/store.h"
#include "sluice/session/files/checkpoint.h"
#include "sluice/session/files/remote_checkpoint.h"
#include "sluice/session/files/safetensors_header.h"
#include "sluice/session/files/weights.h"
#include "sluice/session/pieces/piece_files.h"
#include "sluice/session/pieces/stored_pieces.h"
#include "sluice/session/pretrained/weight_files.h"

namespace sluice::sessions {
namespace stored_tensors_detail {

// Read at first: more than the headers of most files.
constexpr uint64_t kFirstRead = uint64_t{64} << 10;

constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kOne = "model.safetensors";

// Returns the file, or the index, of the weights in a folder of this machine.
base::Result<std::string> find_in_folder(const std::string& folder) {
  const std::string checkpoint = find_checkpoint(folder);
  if (!checkpoint.empty()) {
    const std::string one = base::join_path(checkpoint, kOne), index = base::join_path(checkpoint, kIndex);
    return !base::path_exists(one) && base::path_exists(index) ? index : one;
  }
  const std::string found = find_weight_files(folder);
  if (found.empty()) return no_weights(folder);
  return found;
}

// Returns the file, or the index, of the weights that an address leads to.
base::Result<std::string> find_elsewhere(const std::string& url) {
  if (!cloud::is_object_url(url)) return url;
  SLUICE_TRY(const cloud::ObjectName name, cloud::parse_object_url(url));
  if (!base::ends_with(name.object, ".safetensors")) {
    for (const char* const file : {kOne, kIndex}) {
      SLUICE_TRY(const bool exists, object_exists(base::str(url, "/", file)));
      if (exists) return base::str(url, "/", file);
    }
  }
  return weights_object(url);
}

}  // namespace stored_tensors_detail

StoredReader::StoredReader(const StoredReadOptions& options) : options_(options) {}
StoredReader::~StoredReader() = default;

StoredReads StoredReader::reads() const { return {requests_, bytes_, needed_}; }

base::Result<StoredTensors> StoredReader::list(const std::string& from) {
  namespace detail = stored_tensors_detail;
  std::string found = from;
  if (is_elsewhere(from)) {
    SLUICE_TRY(found, detail::find_elsewhere(without_slash(from)));
  } else if (base::is_directory(from)) {
    SLUICE_TRY(found, detail::find_in_folder(from));
  }
  if (base::ends_with(found, ".index.json")) return list_index(found);
  return list_file(found);
}

base::Result<StoredTensors> StoredReader::list_file(const std::string& file) {
  SLUICE_TRY(const SourceFile* source, files_.find(file));
  SLUICE_TRY(std::string text,
             read_bytes(*source, 0, std::min(source->size, stored_tensors_detail::kFirstRead)));
  if (is_torch_file(std::string_view(text).substr(0, 9)))
    return base::fail(Code::kUnimplemented, source->name,
                      " was written by torch.save: it can only be read whole, not in parts");
  SLUICE_TRY(const uint64_t length, safetensors_header_length(source->name, text, source->size));
  const uint64_t data = kHeaderLengthBytes + length;
  if (text.size() < data) {
    SLUICE_TRY(const std::string rest, read_bytes(*source, text.size(), data));
    text += rest;
  }
  SLUICE_TRY(auto entries,
             parse_safetensors_header(source->name, std::string_view(text).substr(kHeaderLengthBytes, length),
                                      source->size - data));
  saves_[file] = save_in(std::string_view(text).substr(kHeaderLengthBytes, length));
  StoredTensors tensors;
  for (auto& entry : entries) {
    const StoredPiece piece{file, data + entry.begin, std::vector<int64_t>(entry.sizes.size(), 0),
                            entry.sizes};
    tensors.emplace(std::move(entry.name), StoredTensor{entry.type, entry.sizes, {piece}});
  }
  return tensors;
}

base::Result<StoredTensors> StoredReader::list_index(const std::string& index) {
  SLUICE_TRY(const SourceFile* source, files_.find(index));
  if (source->size > kLargestHeader)
    return base::fail(Code::kDataLoss, index, " has ", source->size, " bytes: it is no index of weights");
  SLUICE_TRY(const std::string text, read_bytes(*source, 0, source->size));
  if (!is_piece_index(text)) {
    SLUICE_TRY(const WeightIndex files, parse_weight_index(index, text));
    return list_files(files, index);
  }
  SLUICE_TRY(const PieceIndex pieces, parse_index(text, index));
  WeightIndex files;  // join_pieces() compares their tensors with the index
  for (const std::string& file : files_of(pieces)) files[file];
  SLUICE_TRY(const StoredTensors stored, list_files(files, index));
  return join_pieces(pieces, stored, saves_, index);
}

base::Result<StoredTensors> StoredReader::list_files(
    const std::map<std::string, std::set<std::string>>& files, const std::string& index) {
  const std::string folder = index.substr(0, index.rfind('/') + 1);
  StoredTensors all;
  for (const auto& [name, promised] : files) {
    const std::string file = folder + name;
    SLUICE_TRY(StoredTensors tensors, list_file(file));
    for (const std::string& wanted : promised)
      if (tensors.count(wanted) == 0)
        return base::fail(Code::kDataLoss, file, ": the tensor ", wanted, " is missing, which ", index,
                          " says is here");
    for (auto& [tensor, stored] : tensors)
      if (!all.emplace(tensor, std::move(stored)).second)
        return base::fail(Code::kDataLoss, file, ": the tensor ", tensor,
                          " is in another file of the index too");
  }
  return all;
}

}  // namespace sluice::sessions
