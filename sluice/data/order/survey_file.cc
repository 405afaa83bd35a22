#include "sluice/data/order/survey_file.h"

#include <cstring>
#include <string_view>

#include "sluice/base/files/file.h"
#include "sluice/base/files/private_file.h"
#include "sluice/base/files/trusted_file.h"
#include "sluice/base/formats/crc32c.h"
#include "sluice/base/formats/sha256.h"
#include "sluice/base/text/strings.h"

namespace sluice::data {
namespace {

constexpr std::string_view kMark = "sluice-survey-1\n";

void append(std::string& bytes, const void* from, std::size_t size) {
  bytes.append(static_cast<const char*>(from), size);
}

bool take(std::string_view& bytes, void* to, std::size_t size) {
  if (bytes.size() < size) return false;
  if (size > 0) std::memcpy(to, bytes.data(), size);
  bytes.remove_prefix(size);
  return true;
}

template <typename Number>
void append_all(std::string& bytes, const std::vector<Number>& numbers) {
  const auto count = static_cast<std::uint64_t>(numbers.size());
  append(bytes, &count, sizeof count);
  append(bytes, numbers.data(), numbers.size() * sizeof(Number));
}

template <typename Number>
bool take_all(std::string_view& bytes, std::vector<Number>& numbers) {
  std::uint64_t count = 0;
  if (!take(bytes, &count, sizeof count) || count > bytes.size() / sizeof(Number)) return false;
  numbers.resize(static_cast<std::size_t>(count));
  return take(bytes, numbers.data(), numbers.size() * sizeof(Number));
}

}  // namespace

std::string survey_path(const std::string& folder, const std::string& identity) {
  return base::join_path(folder, base::hexadecimal(base::sha256(identity).substr(0, 20)) + ".survey");
}

std::optional<std::vector<SurveyedShard>> read_survey(const std::string& path, std::size_t shards) {
  const auto text = base::read_trusted_file(path);
  if (!text) return std::nullopt;
  std::string_view bytes = *text;
  std::uint32_t sum = 0;
  if (!base::starts_with(bytes, kMark) || bytes.size() < kMark.size() + sizeof sum) return std::nullopt;
  std::memcpy(&sum, bytes.data() + bytes.size() - sizeof sum, sizeof sum);
  bytes.remove_suffix(sizeof sum);
  if (base::crc32c(bytes.data(), bytes.size()) != sum) return std::nullopt;
  bytes.remove_prefix(kMark.size());
  std::vector<SurveyedShard> found(shards);
  for (SurveyedShard& shard : found)
    if (!take_all(bytes, shard.taken) || !take_all(bytes, shard.lengths)) return std::nullopt;
  return bytes.empty() ? std::optional(std::move(found)) : std::nullopt;
}

base::Status write_survey(const std::string& path, const std::vector<SurveyedShard>& shards) {
  std::string bytes(kMark);
  for (const SurveyedShard& shard : shards) {
    append_all(bytes, shard.taken);
    append_all(bytes, shard.lengths);
  }
  const std::uint32_t sum = base::crc32c(bytes.data(), bytes.size());
  append(bytes, &sum, sizeof sum);
  SLUICE_OK(base::make_private_folder(base::parent_path(path)));
  return base::write_private_file(path, bytes);
}

}  // namespace sluice::data
