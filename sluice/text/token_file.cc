#include "sluice/text/token_file.h"

#include <algorithm>
#include <cstring>

#include "sluice/base/files/file.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/shards/urls.h"
#include "sluice/text/tools/mapped_file.h"
#include "sluice/text/tools/token_format.h"

namespace sluice::text {
namespace {

template <typename T>
T number_at(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string name_of(const std::string& path) {
  for (const char* const end : {".bin", ".idx"})
    if (base::ends_with(path, end)) return path.substr(0, path.size() - 4);
  return path;
}

// Refuses folders and shards with an error of their own, instead of one that says that NAME.bin is missing.
base::Status check_kind(const std::string& file) {
  if (base::is_directory(file) && !base::path_exists(file + ".bin"))
    return base::fail(Code::kInvalidArgument, "'", file, "' is a folder, expected token files: write '",
                      base::join_path(file, "*.bin"), "'");
  const std::string name = file.substr(file.rfind('/') + 1);
  if (name.find(".tar") != std::string::npos && !base::path_exists(name_of(file) + ".bin"))
    return base::fail(Code::kInvalidArgument, "'", file,
                      "' is a shard, expected token files: 'sluice text pack' makes them of it");
  return {};
}

}  // namespace

struct TokenFile::Mapping {
  std::string name;
  MappedFile ids, index;
  int width = 0;
  std::uint64_t sequences = 0, documents = 0, tokens = 0;
  std::size_t places = 0, starts = 0;  // where these lists begin in the index

  base::Status read(const std::string& path);
  base::Status read_header();
  base::Status check_sequences() const;
  std::uint64_t place(std::uint64_t sequence) const {
    return static_cast<std::uint64_t>(number_at<std::int64_t>(index.bytes(), places + 8 * sequence));
  }
  std::uint64_t begin(std::uint64_t document) const {
    const auto sequence =
        static_cast<std::uint64_t>(number_at<std::int64_t>(index.bytes(), starts + 8 * document));
    return sequence == sequences ? tokens : place(sequence) / static_cast<std::uint64_t>(width);
  }
  void copy(std::uint64_t begin, std::size_t count, std::uint32_t* out) const {
    if (count == 0) return;
    const char* const from = ids.bytes().data() + begin * static_cast<std::uint64_t>(width);
    if (width == 4) {
      std::memcpy(out, from, count * 4);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t id;
      std::memcpy(&id, from + 2 * i, 2);
      out[i] = id;
    }
  }
};

base::Status TokenFile::Mapping::read(const std::string& path) {
  name = name_of(path);
  SLUICE_TRY(ids, MappedFile::open(name + ".bin"));
  auto mapped = MappedFile::open(name + ".idx");
  if (!mapped)
    return base::fail_at(
        mapped, name, ".bin has no index (a file of nanoGPT or llm.c becomes one by 'sluice text import')");
  index = *std::move(mapped);
  SLUICE_OK(read_header());
  return check_sequences();
}

base::Status TokenFile::Mapping::read_header() {
  const std::string_view bytes = index.bytes();
  const std::string file = name + ".idx";
  if (bytes.size() < kIndexHeader ||
      bytes.substr(0, sizeof kIndexMagic) != std::string_view(kIndexMagic, sizeof kIndexMagic))
    return base::fail(Code::kDataLoss, file, ": expected an index of Megatron-LM (MMIDIDX), found ",
                      bytes.size(), " bytes of something else");
  std::size_t at = sizeof kIndexMagic;
  const auto version = number_at<std::uint64_t>(bytes, at);
  const auto code = number_at<std::uint8_t>(bytes, at + 8);
  sequences = number_at<std::uint64_t>(bytes, at + 9);
  const auto entries = number_at<std::uint64_t>(bytes, at + 17);
  if (version != kIndexVersion)
    return base::fail(Code::kUnimplemented, file, ": version ", version, " of the index; known is ",
                      kIndexVersion);
  if (code != kUint16 && code != kInt32)
    return base::fail(Code::kUnimplemented, file, ": ids of the element type ", int{code}, "; known are ",
                      int{kUint16}, " (uint16) and ", int{kInt32}, " (int32)");
  width = code == kUint16 ? 2 : 4;
  const std::uint64_t left = bytes.size() - kIndexHeader;
  if (sequences > left / 12 || entries > left / 8 || left != 12 * sequences + 8 * entries)
    return base::fail(Code::kDataLoss, file, ": ", bytes.size(), " bytes do not hold ", sequences,
                      " sequences and ", entries, " starts of documents: it is cut off or damaged");
  if (entries == 0) return base::fail(Code::kDataLoss, file, ": expected at least one start of a document");
  places = kIndexHeader + 4 * sequences;
  starts = places + 8 * sequences;
  documents = entries - 1;
  tokens = ids.bytes().size() / static_cast<std::uint64_t>(width);
  return {};
}

// Each sequence must begin where the previous one ends, and the last must end with the file.
base::Status TokenFile::Mapping::check_sequences() const {
  const std::string_view bytes = index.bytes();
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < sequences; ++i) {
    const auto length = number_at<std::int32_t>(bytes, kIndexHeader + 4 * i);
    if (length < 0 || place(i) != expected)
      return base::fail(Code::kDataLoss, name, ".idx: sequence ", i, " has ", length, " ids at byte ",
                        place(i), ", expected some at byte ", expected);
    expected += static_cast<std::uint64_t>(length) * static_cast<std::uint64_t>(width);
    if (expected > ids.bytes().size())
      return base::fail(Code::kDataLoss, name, ".idx: sequence ", i, " ends at byte ", expected, ", and ",
                        name, ".bin has ", ids.bytes().size(), ": it is cut off, or of another index");
  }
  if (expected != ids.bytes().size())
    return base::fail(Code::kDataLoss, name, ".bin: ", ids.bytes().size(), " bytes, and its index names ",
                      expected);
  std::int64_t before = 0;
  for (std::uint64_t i = 0; i <= documents; ++i) {
    const auto start = number_at<std::int64_t>(bytes, starts + 8 * i);
    const bool right = i == 0           ? start == 0
                       : i == documents ? start == static_cast<std::int64_t>(sequences)
                                        : start >= before && start <= static_cast<std::int64_t>(sequences);
    if (!right && !(documents == 0 && sequences == 0))
      return base::fail(Code::kDataLoss, name, ".idx: document ", i, " begins with sequence ", start, " of ",
                        sequences);
    before = start;
  }
  return {};
}

TokenFile TokenFile::open(const std::string& path) {
  auto mapping = std::make_shared<Mapping>();
  base::value_or_throw(mapping->read(path));
  return TokenFile(std::move(mapping));
}

const std::string& TokenFile::name() const { return mapping_->name; }
std::size_t TokenFile::documents() const { return mapping_->documents; }
std::uint64_t TokenFile::tokens() const { return mapping_->tokens; }
int TokenFile::width() const { return mapping_->width; }

std::uint64_t TokenFile::begin(std::size_t document) const {
  if (document > mapping_->documents)
    throw_error(Code::kOutOfRange, base::str(name(), ": document ", document, " of ", documents()));
  return mapping_->begin(document);
}

void TokenFile::copy(std::uint64_t begin, std::size_t count, std::uint32_t* ids) const {
  if (begin > tokens() || count > tokens() - begin)
    throw_error(Code::kOutOfRange,
                base::str(name(), ": ", count, " tokens from ", begin, " on, and there are ", tokens()));
  mapping_->copy(begin, count, ids);
}

void TokenFile::check(std::size_t vocabulary, std::uint64_t first, std::uint64_t all) const {
  constexpr std::uint64_t kAtOnce = std::uint64_t{1} << 16;
  std::vector<std::uint32_t> ids(static_cast<std::size_t>(std::min(kAtOnce, all)));
  const std::uint64_t last = first + all;
  for (std::uint64_t begin = first; begin < last; begin += kAtOnce) {
    const auto count = static_cast<std::size_t>(std::min(kAtOnce, last - begin));
    copy(begin, count, ids.data());
    const auto end = ids.begin() + static_cast<std::ptrdiff_t>(count);
    const auto bad = std::find_if(ids.begin(), end, [&](std::uint32_t id) { return id >= vocabulary; });
    if (bad == end) continue;
    const std::uint64_t place = begin + static_cast<std::uint64_t>(bad - ids.begin());
    std::size_t low = 0, high = documents();  // finds the last document that begins at or before the place
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      (mapping_->begin(middle) <= place ? low : high) = middle;
    }
    throw_error(Code::kOutOfRange, base::str(name(), ".bin: the id ", *bad, " at place ",
                                             place - mapping_->begin(low), " of document ", low, " (token ",
                                             place, " of the file) is not below the vocabulary's size ",
                                             vocabulary, ": was it made with another tokenizer?"));
  }
}

TokenSet TokenSet::open(const std::string& files) {
  std::vector<TokenFile> opened;
  for (const std::string& file : base::value_or_throw(data::expand_urls(files))) {
    base::value_or_throw(check_kind(file));
    opened.push_back(TokenFile::open(file));
  }
  return TokenSet(std::move(opened));
}

TokenSet::TokenSet(std::vector<TokenFile> files) : files_(std::move(files)) {
  for (const TokenFile& file : files_) {
    first_.push_back(first_.back() + file.documents());
    begins_.push_back(begins_.back() + file.tokens());
  }
}

std::pair<std::size_t, std::size_t> TokenSet::find(std::size_t document) const {
  if (document >= documents())
    throw_error(Code::kOutOfRange, base::str("document ", document, " of ", documents()));
  const auto behind = std::upper_bound(first_.begin(), first_.end(), document);
  const auto file = static_cast<std::size_t>(behind - first_.begin()) - 1;
  return {file, document - first_[file]};
}

std::uint64_t TokenSet::length(std::size_t document) const {
  const auto [file, place] = find(document);
  return files_[file].length(place);
}

std::uint64_t TokenSet::begin(std::size_t document) const {
  const auto [file, place] = find(document);
  return begins_[file] + files_[file].begin(place);
}

std::vector<std::uint32_t> TokenSet::document(std::size_t document) const {
  std::vector<std::uint32_t> ids(length(document));
  copy(begin(document), ids.size(), ids.data());
  return ids;
}

template <typename Use>
void TokenSet::for_parts(std::uint64_t begin, std::uint64_t count, const Use& use) const {
  if (begin > tokens() || count > tokens() - begin)
    throw_error(Code::kOutOfRange, base::str(count, " tokens from ", begin, " on, and there are ", tokens()));
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), begin);
  for (auto file = static_cast<std::size_t>(behind - begins_.begin()) - 1; count > 0; ++file) {
    const std::uint64_t part = std::min(count, begins_[file + 1] - begin);
    use(files_[file], begin - begins_[file], part);
    begin += part;
    count -= part;
  }
}

void TokenSet::copy(std::uint64_t begin, std::size_t count, std::uint32_t* ids) const {
  for_parts(begin, count, [&](const TokenFile& file, std::uint64_t from, std::uint64_t part) {
    file.copy(from, static_cast<std::size_t>(part), ids);
    ids += part;
  });
}

void TokenSet::check(std::size_t vocabulary, std::uint64_t begin, std::uint64_t count) const {
  for_parts(begin, count, [&](const TokenFile& file, std::uint64_t from, std::uint64_t part) {
    file.check(vocabulary, from, part);
  });
}

}  // namespace sluice::text
