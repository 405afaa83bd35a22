#include "sluice/data/shards/shard_index.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "sluice/base/files/file.h"
#include "sluice/base/formats/json_bytes.h"
#include "sluice/base/formats/parse_json.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/quantity.h"
#include "sluice/base/text/shown_url.h"
#include "sluice/base/text/strings.h"
#include "sluice/cloud/storage.h"
#include "sluice/data/shards/group.h"
#include "sluice/data/shards/urls.h"

namespace sluice::data {
namespace {

constexpr std::string_view kVersion = "v1.2";
constexpr std::string_view kTokensMagic = "MMIDIDX";  // of Megatron-LM's index of token files
constexpr char kChecksums[] = "checksums";            // in sizes.json

// Returns the next word of a line and removes it from the line.
std::string_view take_word(std::string_view& line) {
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

bool parse_number(std::string_view word, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return !word.empty() && error == std::errc() && end == word.data() + word.size() && number >> 62 == 0;
}

constexpr std::string_view kEscaped = " \t\r\n\v\f%";

std::string percent(char c) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {'%', kDigits[c >> 4], kDigits[c & 15]};
}

// Returns the character that the three characters at `i` stand for, if they are the percent() of white space
// or of a percent sign.
std::optional<char> escape_at(std::string_view text, std::size_t i) {
  if (text[i] != '%') return std::nullopt;
  for (const char c : kEscaped)
    if (text.substr(i, 3) == percent(c)) return c;
  return std::nullopt;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::string folder_of(std::string_view url) {
  const std::size_t slash = url.rfind('/');
  return std::string(slash == std::string_view::npos ? "" : url.substr(0, slash + 1));
}

// Escapes a name for a line whose words are separated by white space: white space becomes %20 and the like,
// and a percent sign that would be read as an escape becomes %25.
std::string escaped(std::string_view name) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool white = name[i] != '%' && kEscaped.find(name[i]) != std::string_view::npos;
    const bool special = white || escape_at(name, i);
    text += special ? percent(name[i]) : std::string(1, name[i]);
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto character = escape_at(text, i);
    name += character.value_or(text[i]);
    if (character) i += 2;
  }
  return name;
}

std::uint64_t end_of_members(const std::vector<IndexedMember>& members) {
  return tar_padded(members.back().offset + members.back().size);
}

bool parse_sums(const nlohmann::json& sums, ShardSizes& sizes) {
  if (!sums.is_object()) return false;
  for (const auto& [shard, sum] : sums.items()) {
    const auto record = sizes.find(shard);
    if (record == sizes.end()) continue;
    const bool whole = sum.is_object() && sum.contains("bytes") && sum["bytes"].is_number_unsigned() &&
                       sum.contains("crc32c") && sum["crc32c"].is_string();
    const auto crc = whole ? cloud::crc32c_of_base64(sum["crc32c"].get<std::string>()) : std::nullopt;
    if (!crc) return false;
    record->second.sum = ShardSum{sum["bytes"].get<std::uint64_t>(), *crc};
  }
  return true;
}

base::Result<std::vector<IndexedMember>> parse_sample(std::string_view line, const std::string& where) {
  std::vector<IndexedMember> members;
  while (true) {
    const std::string_view extension = take_word(line);
    if (extension.empty()) break;
    IndexedMember member{unescaped(extension), 0, 0, ""};
    const std::string_view offset = take_word(line), size = take_word(line);
    member.name = unescaped(take_word(line));
    if (!parse_number(offset, member.offset) || !parse_number(size, member.size) || member.name.empty())
      return base::fail(Code::kDataLoss, where, ": expected 'EXTENSION OFFSET SIZE NAME', found '", extension,
                        " ", offset, " ", size, " ", member.name, "'");
    members.push_back(std::move(member));
  }
  if (members.empty()) return base::fail(Code::kDataLoss, where, ": a sample without members");
  return members;
}

}  // namespace

std::vector<std::uint64_t> ShardIndex::starts() const {
  std::vector<std::uint64_t> result;
  result.reserve(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i)
    result.push_back(i == 0 ? 0 : end_of_members(samples[i - 1]));
  return result;
}

std::uint64_t ShardIndex::end() const { return samples.empty() ? 0 : end_of_members(samples.back()); }

base::Result<ShardIndex> index_shard(const std::string& url, ShardSum* sum) {
  SourceOptions options;
  options.sum = sum;
  SLUICE_TRY(auto source, open_source(url, options));
  ShardReader reader(std::move(source), Wanted{false, {}});
  ShardIndex index;
  RawSample sample;
  while (true) {
    SLUICE_TRY(const bool found, reader.next(sample));
    if (!found) return index;
    auto& members = index.samples.emplace_back();
    for (const Field& field : sample.fields) {
      const auto name = split_name(field.member);
      members.push_back({std::string(name->extension), field.payload, field.size, std::string(field.member)});
    }
  }
}

base::Result<std::string> format_index(const ShardIndex& index) {
  std::string text = base::str(kVersion, " ", index.samples.size(), "\n");
  for (const auto& members : index.samples) {
    for (const IndexedMember& member : members) {
      if (member.extension.empty())
        return base::fail(Code::kInvalidArgument, "the member '", member.name,
                          "' cannot be listed in an index file: expected a name with an extension");
      text += base::str(&member == &members.front() ? "" : " ", escaped(member.extension), " ", member.offset,
                        " ", member.size, " ", escaped(member.name));
    }
    text += "\n";
  }
  return text;
}

// Returns the first words of a text that is not an index, for an error; does not quote bytes of other files.
std::string shown(std::string_view version, std::string_view count) {
  const std::string found = base::str(version.substr(0, 40), " ", count.substr(0, 40));
  const bool is_text = std::all_of(found.begin(), found.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return is_text ? base::str("'", found, "'") : "other bytes than text";
}

base::Result<ShardIndex> parse_index(std::string_view text, const std::string& name) {
  std::string_view first = take_line(text);
  const std::string_view version = take_word(first), count_word = take_word(first);
  std::uint64_t count = 0;
  if (base::starts_with(version, kTokensMagic))
    return base::fail(Code::kInvalidArgument, name,
                      ": expected the index of a shard (.tar), found the index of ", "a token file");
  if (version != kVersion || !parse_number(count_word, count))
    return base::fail(Code::kDataLoss, name, ": expected an index file that begins with '", kVersion,
                      " SAMPLES', found ", shown(version, count_word),
                      ": make it again with 'sluice data index'");
  ShardIndex index;
  for (std::uint64_t line = 2; !text.empty(); ++line) {
    SLUICE_TRY(auto members, parse_sample(take_line(text), base::str(name, ", line ", line)));
    index.samples.push_back(std::move(members));
  }
  if (index.samples.size() != count)
    return base::fail(
        Code::kDataLoss, name, ": expected ", base::counted(static_cast<std::int64_t>(count), "sample"),
        " as its first line says, found ", index.samples.size(), ": make it again with 'sluice data index'");
  return index;
}

std::string index_path(std::string_view url) {
  const std::string folder = folder_of(url);
  const std::string_view file = url.substr(folder.size());
  return base::str(folder, file.substr(0, file.find('.', 1)), ".idx");
}

base::Result<std::optional<ShardIndex>> read_index(const std::string& url) {
  const std::string path = index_path(url);
  SLUICE_TRY(const auto text, read_text(path));
  if (!text) return std::optional<ShardIndex>();
  SLUICE_TRY(auto index, parse_index(*text, path));
  return std::optional(std::move(index));
}

base::Status write_index(const std::string& url, const ShardIndex& index) {
  auto text = format_index(index);
  if (!text) return base::fail_at(text, url);
  return write_text(index_path(url), *text);
}

base::Result<std::vector<std::string>> keys_of_shard(const std::string& url) {
  SLUICE_TRY(auto index, read_index(url));
  if (!index) {
    SLUICE_TRY(index, index_shard(url));
  }
  std::vector<std::string> keys;
  for (const auto& members : index->samples) {
    const auto name = split_name(members.front().name);
    keys.emplace_back(name ? name->key : members.front().name);
  }
  return keys;
}

base::Result<std::optional<std::string>> read_text(const std::string& url) {
  auto source = open_source(url);
  if (!source && source.error().code() == Code::kNotFound) return std::optional<std::string>();
  if (!source) return tl::unexpected<Error>(source.error());
  std::string text;
  std::vector<char> piece(1 << 16);
  while (true) {
    SLUICE_TRY(const std::size_t got, (*source)->read(piece.data(), piece.size()));
    if (got == 0) return std::optional(std::move(text));
    if (text.size() + got > base::kMaxJsonBytes)
      return base::fail(Code::kResourceExhausted, base::shown_urls(url), ": more than ",
                        base::kMaxJsonBytes >> 20, " MiB, which no text beside shards has");
    text.append(piece.data(), got);
  }
}

std::vector<std::string> class_names(const std::string& shard) {
  const auto text = read_text(shard.substr(0, shard.rfind('/') + 1) + "classes.txt");
  if (!text || !*text) return {};
  auto names = base::split(**text, '\n');
  if (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

base::Status write_text(const std::string& url, const std::string& text) {
  if (!is_remote(url)) return base::write_file_atomically(url, text);
  if (!cloud::is_object_url(url))
    return base::fail(Code::kInvalidArgument, "cannot write ", url,
                      ": expected a file or an object (gs://…, s3://…, az://…)");
  SLUICE_TRY(const auto name, cloud::parse_object_url(url));
  SLUICE_TRY(const cloud::Store* store, cloud::store_to_write(name));
  SLUICE_TRY([[maybe_unused]] const auto facts, store->upload_text(text, name));
  return {};
}

base::Result<ShardSizes> parse_sizes(std::string_view text, const std::string& name) {
  const auto parsed = base::with_bytes(base::parse_json(text));
  ShardSizes sizes;
  bool good = parsed.is_object();
  if (good)
    for (const auto& [shard, size] : parsed.items()) {
      if (shard == kChecksums) continue;
      good = good && size.is_number_integer() && size.get<std::int64_t>() >= 0;
      if (good) sizes[shard] = size.get<std::int64_t>();
    }
  if (good && parsed.contains(kChecksums)) good = parse_sums(parsed[kChecksums], sizes);
  if (!good)
    return base::fail(Code::kDataLoss, name,
                      ": expected {\"SHARD.tar\": SAMPLES, …}, found something else: make it again with "
                      "'sluice data index'");
  return sizes;
}

std::string format_sizes(const ShardSizes& sizes) {
  using Json = nlohmann::ordered_json;
  Json object = Json::object(), sums = object;
  // operator[] would compare each name with all names before it.
  const auto add = [](Json& to, const std::string& name, Json value) {
    to.get_ref<Json::object_t&>().emplace_back(name, std::move(value));
  };
  for (const auto& [shard, record] : sizes) {
    const std::string name = base::json_of_bytes(shard);
    add(object, name, record.samples);
    if (record.sum)
      add(sums, name,
          {{"bytes", record.sum->bytes}, {"crc32c", cloud::base64_of_crc32c(record.sum->crc32c)}});
  }
  if (!sums.empty()) add(object, kChecksums, std::move(sums));
  return object.dump(1) + "\n";
}

base::Result<std::optional<ShardSizes>> read_sizes(const std::string& url) {
  const std::string path = folder_of(url) + "sizes.json";
  SLUICE_TRY(const auto text, read_text(path));
  if (!text) return std::optional<ShardSizes>();
  SLUICE_TRY(auto sizes, parse_sizes(*text, path));
  return std::optional(std::move(sizes));
}

base::Result<std::optional<ShardRecord>> FolderSizes::find(const std::string& url) {
  const std::string folder = folder_of(url);
  const std::string_view file = std::string_view(url).substr(folder.size());
  const std::lock_guard lock(mutex_);
  auto known = folders_.find(folder);
  if (known == folders_.end()) {
    SLUICE_TRY(auto sizes, read_sizes(url));
    known = folders_.emplace(folder, std::move(sizes)).first;
  }
  if (!known->second) return std::optional<ShardRecord>();
  const auto record = known->second->find(file);
  return record == known->second->end() ? std::optional<ShardRecord>() : std::optional(record->second);
}

}  // namespace sluice::data
