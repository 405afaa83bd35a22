#include "sluice/session/pieces/piece_index.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "sluice/base/files/safe_join.h"
#include "sluice/base/formats/unique_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/base/text/printable.h"
#include "sluice/base/text/strings.h"
#include "sluice/base/text/utf8.h"
#include "sluice/session/files/tensor_file.h"

namespace sluice::sessions {
namespace piece_index_detail {

constexpr const char* kEnding = ".safetensors";
constexpr uint64_t kLargest = uint64_t{1} << 48;  // of a size

// Returns the number with at least five digits.
std::string digits(int number) {
  const std::string text = std::to_string(number);
  return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
}

nlohmann::json to_json(const Piece& piece) {
  nlohmann::json json = {{"start", piece.start}, {"shape", piece.sizes}};
  if (piece.crc32c) json["crc32c"] = *piece.crc32c;
  return json;
}

// Reads the members of one tensor of an index.
class TensorReader {
 public:
  TensorReader(const std::string& path, const std::string& name, const nlohmann::json& files)
      : path_(path), name_(name), files_(files) {}

  base::Result<PiecedTensor> read(const nlohmann::json& json) const {
    if (!json.is_object() || !json.contains("dtype") || !json["dtype"].is_string() ||
        !json.contains("shape") || !json.contains("pieces") || !json["pieces"].is_object())
      return bad("expected dtype, shape and pieces");
    PiecedTensor tensor;
    tensor.type = element_type(json["dtype"].get<std::string>());
    if (tensor.type == c10::ScalarType::Undefined)
      return bad("the element type ", base::printable(json["dtype"].get<std::string>()), " is not known");
    SLUICE_TRY(tensor.sizes, numbers(json["shape"]));
    SLUICE_OK(check_bytes(tensor));
    for (const auto& [name, piece] : json["pieces"].items()) {
      SLUICE_TRY(Piece one, piece_of(name, piece, tensor.sizes));
      tensor.pieces.push_back(std::move(one));
    }
    SLUICE_OK(check_grid(tensor));
    return tensor;
  }

 private:
  template <typename... Texts>
  tl::unexpected<Error> bad(const Texts&... what) const {
    return base::fail(Code::kDataLoss, path_, ": the tensor ", base::printable(name_),
                      " is wrong: ", what...);
  }

  base::Result<std::vector<int64_t>> numbers(const nlohmann::json& json) const {
    std::vector<int64_t> found;
    const bool good = json.is_array() && std::all_of(json.begin(), json.end(), [](const auto& number) {
                        return number.is_number_unsigned() && number.template get<uint64_t>() <= kLargest;
                      });
    if (!good) return bad("a shape or a start is not a list of sizes");
    for (const auto& number : json) found.push_back(number.template get<int64_t>());
    return found;
  }

  base::Status check_bytes(const PiecedTensor& tensor) const {
    int64_t bytes = static_cast<int64_t>(c10::elementSize(tensor.type));
    for (const int64_t size : tensor.sizes)
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes)) return bad("its size overflows");
    return {};
  }

  base::Result<Piece> piece_of(const std::string& name, const nlohmann::json& json,
                               const std::vector<int64_t>& whole) const {
    const std::string shown = base::printable(name);
    if (!json.is_object() || !json.contains("start") || !json.contains("shape"))
      return bad("its piece ", shown, " has no start and shape");
    Piece piece;
    piece.name = name;
    SLUICE_TRY(piece.start, numbers(json["start"]));
    SLUICE_TRY(piece.sizes, numbers(json["shape"]));
    bool inside = piece.start.size() == whole.size() && piece.sizes.size() == whole.size();
    for (size_t i = 0; inside && i < whole.size(); ++i) inside = piece.start[i] + piece.sizes[i] <= whole[i];
    if (!inside) return bad("its piece ", shown, " is not within it");
    if (const auto crc = json.find("crc32c"); crc != json.end()) {
      if (!crc->is_number_unsigned() || crc->get<uint64_t>() > UINT32_MAX)
        return bad("the checksum of its piece ", shown, " is not a number of 32 bits");
      piece.crc32c = crc->get<uint32_t>();
    }
    const auto file = files_.find(name);
    if (file == files_.end() || !file->is_string())
      return bad("its piece ", shown, " has no file in weight_map");
    piece.file = file->get<std::string>();
    if (piece.file.find('/') != std::string::npos || !base::safe_join(".", piece.file))
      return bad("its piece ", shown, " must be in a file of the same folder, not ",
                 base::printable(piece.file));
    return piece;
  }

  // The blocks of a layout form a grid: in each dimension a piece ends where the next ones begin.
  base::Status check_grid(const PiecedTensor& tensor) const {
    uint64_t places = 1;
    for (size_t dim = 0; dim < tensor.sizes.size(); ++dim) {
      std::set<int64_t> starts;
      for (const Piece& piece : tensor.pieces) starts.insert(piece.start[dim]);
      if (starts.empty() || *starts.begin() != 0) return bad("no piece begins at 0 in dimension ", dim);
      for (const Piece& piece : tensor.pieces) {
        const auto next = starts.upper_bound(piece.start[dim]);
        const int64_t wanted = next == starts.end() ? tensor.sizes[dim] : *next;
        const int64_t end = piece.start[dim] + piece.sizes[dim];
        if (end != wanted)
          return bad("its piece ", base::printable(piece.name), " ends at ", end, " in dimension ", dim,
                     ", where ", wanted, " was expected: pieces overlap, or leave a hole");
      }
      if (__builtin_mul_overflow(places, starts.size(), &places)) return bad("its pieces overflow");
    }
    std::set<std::vector<int64_t>> starts;
    for (const Piece& piece : tensor.pieces) starts.insert(piece.start);
    if (starts.size() == tensor.pieces.size() && starts.size() == places) return {};
    return bad("it has ", tensor.pieces.size(), " pieces, of which ", starts.size(),
               " begin in different places; expected ", places, ": pieces overlap, or leave a hole");
  }

  const std::string& path_;
  const std::string& name_;
  const nlohmann::json& files_;
};

// A part's name, taken apart.
struct Part {
  std::string kind;
  int number = 0, count = 0;
};

// Returns nothing for a name that part_name() does not give.
std::optional<Part> part_of(const std::string& name) {
  for (const char* const kind : {kModel, kState}) {
    const std::string start = base::str(kind, "-");
    const size_t middle = name.find("-of-");
    if (!base::starts_with(name, start) || !base::ends_with(name, kEnding) || middle == std::string::npos)
      continue;
    const size_t end = name.size() - std::string_view(kEnding).size();
    const auto number = base::number_of<int>(name.substr(start.size(), middle - start.size()));
    const auto count = base::number_of<int>(name.substr(middle + 4, end - middle - 4));
    if (number && count && *number >= 1 && *number <= *count && name == part_name(kind, *number - 1, *count))
      return Part{kind, *number, *count};
  }
  return std::nullopt;
}

}  // namespace piece_index_detail

uint64_t bytes_of(const PiecedTensor& tensor) {
  uint64_t bytes = c10::elementSize(tensor.type);
  for (const int64_t size : tensor.sizes) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

std::string piece_name(const std::string& name, const std::vector<int64_t>& start,
                       const std::vector<int64_t>& sizes, const std::vector<int64_t>& whole) {
  return sizes == whole ? name : base::str(name, "@", base::join(start, ","));
}

std::string part_name(const std::string& kind, int process, int processes) {
  namespace detail = piece_index_detail;
  return base::str(kind, "-", detail::digits(process + 1), "-of-", detail::digits(processes),
                   detail::kEnding);
}

std::string index_name(const std::string& kind) { return kind + ".safetensors.index.json"; }

base::Result<std::string> index_text(const PieceIndex& index) {
  namespace detail = piece_index_detail;
  nlohmann::json files = nlohmann::json::object(), tensors = nlohmann::json::object();
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : index.tensors) {
    if (!base::is_utf8(name))
      return base::fail(Code::kInvalidArgument, "cannot save tensor ", name, ": expected a name in UTF-8");
    nlohmann::json pieces = nlohmann::json::object();
    for (const Piece& piece : tensor.pieces) {
      if (files.contains(piece.name))
        return base::fail(Code::kInvalidArgument, "two pieces of tensors are called ", piece.name);
      files[piece.name] = piece.file;
      pieces[piece.name] = detail::to_json(piece);
    }
    tensors[name] = {
        {"dtype", element_name(tensor.type)}, {"shape", tensor.sizes}, {"pieces", std::move(pieces)}};
    bytes += bytes_of(tensor);
  }
  const nlohmann::json json = {{"metadata", {{"total_size", bytes}, {kSave, index.save}}},
                               {"weight_map", std::move(files)},
                               {"tensors", std::move(tensors)}};
  return json.dump(1) + "\n";
}

base::Result<PieceIndex> parse_index(const std::string& text, const std::string& path) {
  namespace detail = piece_index_detail;
  const auto parsed = base::parse_unique_json(text);
  if (!parsed) return base::fail_at(parsed, path);
  const auto& json = *parsed;
  const auto has = [&](const char* name) {
    return json.is_object() && json.contains(name) && json[name].is_object();
  };
  if (!has("metadata") || !has("weight_map") || !has("tensors") || !json["metadata"].contains(kSave) ||
      !json["metadata"][kSave].is_string())
    return base::fail(Code::kDataLoss, path, ": expected a JSON object with the objects \"metadata\" (with ",
                      kSave, "), \"weight_map\" and \"tensors\"");
  PieceIndex index;
  index.save = json["metadata"][kSave].get<std::string>();
  std::set<std::string> seen;
  for (const auto& [name, tensor] : json["tensors"].items()) {
    SLUICE_TRY(PiecedTensor read, detail::TensorReader(path, name, json["weight_map"]).read(tensor));
    for (const Piece& piece : read.pieces)
      if (!seen.insert(piece.name).second)
        return base::fail(Code::kDataLoss, path, ": two tensors have the piece ",
                          base::printable(piece.name));
    index.tensors.emplace(name, std::move(read));
  }
  if (seen.size() != json["weight_map"].size())
    return base::fail(Code::kDataLoss, path, ": weight_map names ", json["weight_map"].size(),
                      " pieces, and the tensors have ", seen.size());
  return index;
}

bool has_parts(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return piece_index_detail::part_of(name).has_value() || name == index_name(kModel) ||
           name == index_name(kState);
  });
}

std::vector<std::string> missing_parts(const std::vector<std::string>& names) {
  namespace detail = piece_index_detail;
  constexpr size_t kNamed = 8;  // of more files, the first ones are named
  const std::set<std::string> there(names.begin(), names.end());
  int count = 1;
  for (const std::string& name : names)
    if (const auto part = detail::part_of(name)) count = std::max(count, part->count);
  std::vector<std::string> missing;
  const auto want = [&](const std::string& name) {
    if (there.count(name) == 0) missing.push_back(name);
  };
  for (const char* const kind : {kModel, kState}) {
    want(index_name(kind));
    for (int p = 0; p < count && missing.size() < kNamed; ++p) want(part_name(kind, p, count));
  }
  want("state.json");
  return missing;
}

}  // namespace sluice::sessions
