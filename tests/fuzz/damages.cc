// damages COUNT SEED: so many random damages to a shard, read by data sets as a training reads them: in the
// shards' order or shuffled, stopping at what is bad or leaving it out, without anything beside the shards,
// with index files, or with the checksums of sizes.json. Nothing may be lost in silence: what ends without an
// error has given every sample, or has counted it as bad. Without an index that is known of archives alone
// that a second, plain reader here does not take for whole ones, since any whole archive may be another one;
// there the same samples must come.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sluice/base/files/file.h"
#include "sluice/base/random.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/number.h"
#include "sluice/data/dataset.h"
#include "sluice/data/shards/shard_index.h"
#include "sluice/data/shards/tar_writer.h"

namespace {

using namespace sluice;
using Samples = std::vector<std::pair<std::string, std::string>>;  // key, text

constexpr std::size_t kBlock = 512;
constexpr int kShards = 2, kEach = 5;

enum class Beside { kNothing, kIndex, kSums };
constexpr const char* kBeside[] = {"nothing", "index files", "checksums"};

struct Set {
  std::string folder, urls;
  std::vector<std::string> shards;  // as they were
};

std::string text_of(int number, base::Random& random) {
  std::string text = base::str("text ", number, " ");
  for (std::uint64_t left = random.below(1200); left > 0; --left)
    text += static_cast<char>('a' + random.below(26));
  return text;
}

Set make_set(const std::string& folder, Beside beside) {
  Set set{folder, folder + "/s-{0..1}.tar", {}};
  base::value_or_throw(base::make_directories(folder));
  base::Random random({7});
  data::ShardSizes sizes;
  for (int shard = 0, number = 0; shard < kShards; ++shard) {
    std::string bytes;
    for (int i = 0; i < kEach; ++i, ++number)
      for (const auto& [ending, payload] :
           {std::pair(".txt", text_of(number, random)), std::pair(".cls", std::string("1"))})
        bytes += data::tar_member(base::str("k", 100 + number, ending), payload);
    bytes += data::tar_end(bytes.size());
    const std::string path = base::str(folder, "/s-", shard, ".tar");
    base::value_or_throw(base::write_file_atomically(path, bytes));
    set.shards.push_back(std::move(bytes));
    data::ShardSum sum;
    const auto index = base::value_or_throw(data::index_shard(path, &sum));
    if (beside == Beside::kIndex) base::value_or_throw(data::write_index(path, index));
    sizes[base::str("s-", shard, ".tar")] = data::ShardRecord(kEach, sum);
  }
  if (beside == Beside::kSums)
    base::value_or_throw(base::write_file_atomically(folder + "/sizes.json", data::format_sizes(sizes)));
  return set;
}

void damage(std::string& bytes, base::Random& random) {
  const auto place = [&](std::size_t unit) { return random.below(bytes.size() / unit) * unit; };
  const bool blocks = random.below(2) == 0;
  const std::size_t unit = blocks ? kBlock : 1, at = place(unit);
  const std::size_t length =
      std::min<std::size_t>(bytes.size() - at, unit * (1 + random.below(blocks ? 6 : 700)));
  std::string other(length, '\0');
  for (char& c : other) c = static_cast<char>(random.below(256));
  switch (random.below(9)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ 1 << random.below(8));
      return;
    case 1:
      bytes.replace(at, length, other);
      return;
    case 2:
      bytes.resize(at);
      return;
    case 3:
      bytes.replace(at, length, std::string(length, '\0'));
      return;
    case 4:
      bytes.replace(at, std::string::npos, std::string(bytes.size() - at, '\0'));
      return;
    case 5:
      bytes.erase(at, length);
      return;
    case 6:
      bytes.insert(at, random.below(2) == 0 ? other : std::string(length, '\0'));
      return;
    case 7:
      bytes.insert(place(unit), bytes.substr(at, length));
      return;
    default:
      bytes += random.below(3) == 0 ? bytes : random.below(2) == 0 ? other : std::string(length, '\0');
  }
}

std::optional<std::uint64_t> octal(const char* field, std::size_t size) {
  std::uint64_t value = 0;
  std::size_t i = 0;
  while (i < size && field[i] == ' ') ++i;
  for (; i < size && field[i] >= '0' && field[i] <= '7'; ++i)
    value = value * 8 + static_cast<std::uint64_t>(field[i] - '0');
  for (; i < size; ++i)
    if (field[i] != ' ' && field[i] != '\0') return std::nullopt;
  return value;
}

// The samples of a whole archive of plain files; nothing where it is none.
std::optional<Samples> read_plainly(const std::string& bytes) {
  Samples samples;
  std::size_t at = 0;
  while (true) {
    if (at + 2 * kBlock > bytes.size()) return std::nullopt;
    const char* header = bytes.data() + at;
    if (std::all_of(header, header + kBlock, [](char c) { return c == '\0'; })) break;
    std::uint64_t sum = 8 * ' ';
    for (std::size_t i = 0; i < kBlock; ++i)
      if (i < 148 || i >= 156) sum += static_cast<unsigned char>(header[i]);
    const auto size = octal(header + 124, 12), said = octal(header + 148, 8);
    if (!size || said != sum || (header[156] != '0' && header[156] != '\0')) return std::nullopt;
    at += kBlock;
    if (*size > bytes.size() - at) return std::nullopt;
    const std::string name(header, strnlen(header, 100)), key = name.substr(0, name.find('.'));
    if (name == key + ".txt") samples.emplace_back(key, bytes.substr(at, *size));
    at += (*size + kBlock - 1) / kBlock * kBlock;
  }
  const bool ends = std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(),
                                [](char c) { return c == '\0'; });
  return ends ? std::optional(samples) : std::nullopt;
}

struct Seen {
  bool error = false;
  std::set<std::pair<std::string, std::string>> samples;
  std::int64_t bad = 0;
};

Seen read(const Set& set, bool shuffled, bool skips) {
  Seen seen;
  try {
    auto dataset = data::WebDataset(set.urls).to_tuple("txt", "cls").batch(1);
    if (shuffled) dataset.shuffle(3).interleave(kShards);
    if (skips) dataset.on_error(data::OnError::kSkip).max_bad(kShards * kEach);
    const auto stream = shuffled ? dataset.open(0) : dataset.open();
    while (const auto batch = stream->next())
      for (std::size_t i = 0; i < batch->keys.size(); ++i)
        seen.samples.emplace(batch->keys[i], batch->columns[0].text[i]);
    seen.bad = stream->statistics().bad;
  } catch (const std::exception&) {
    seen.error = true;
  }
  return seen;
}

std::set<std::string> keys_of(const std::set<std::pair<std::string, std::string>>& samples) {
  std::set<std::string> keys;
  for (const auto& [key, text] : samples) keys.insert(key);
  return keys;
}

// What was lost in silence; nothing where all is well.
std::string lost(const Seen& seen, Beside beside, bool skips, bool is_changed,
                 const std::optional<Samples>& plain,
                 const std::set<std::pair<std::string, std::string>>& whole) {
  if (seen.error) return "";
  const auto keys = keys_of(seen.samples);
  if (beside == Beside::kNothing && plain) {
    const std::set<std::pair<std::string, std::string>> wanted(plain->begin(), plain->end());
    return seen.samples == wanted || seen.bad > 0 ? "" : "other samples than the archive has";
  }
  if (beside == Beside::kSums && !skips && is_changed) return "other bytes than sizes.json says";
  return keys.size() + static_cast<std::size_t>(seen.bad) >= keys_of(whole).size()
             ? ""
             : base::str(keys.size(), " samples and ", seen.bad, " bad ones of ", whole.size());
}

}  // namespace

int main(int count_of_arguments, char** arguments) {
  const auto count = count_of_arguments == 3 ? base::number_of<std::int64_t>(arguments[1]) : std::nullopt;
  const auto seed = count_of_arguments == 3 ? base::number_of<std::uint64_t>(arguments[2]) : std::nullopt;
  if (!count || *count < 1 || !seed) {
    std::fprintf(stderr, "damages COUNT SEED: two whole numbers\n");
    return 2;
  }
  if (std::freopen("/dev/null", "w", stderr) == nullptr) return 2;  // a warning for each bad shard
  const auto folder = base::value_or_throw(base::TemporaryDirectory::create("sluice-damages"));
  std::vector<Set> sets;
  for (const Beside beside : {Beside::kNothing, Beside::kIndex, Beside::kSums})
    sets.push_back(make_set(folder.path(base::str(static_cast<int>(beside))), beside));
  const auto whole = read(sets[0], false, false).samples;
  if (whole.size() != kShards * kEach) {
    std::printf("the undamaged set cannot be read\n");
    return 1;
  }
  std::map<std::string, std::int64_t> outcomes;
  std::int64_t losses = 0;
  for (std::int64_t number = 0; number < *count; ++number) {
    base::Random random({*seed, static_cast<std::uint64_t>(number)});
    const auto beside = static_cast<Beside>(random.below(3));
    const bool shuffled = random.below(2) == 0, skips = random.below(2) == 0;
    const std::size_t which = random.below(kShards);
    const Set& set = sets[static_cast<std::size_t>(beside)];
    std::string bytes = set.shards[which];
    damage(bytes, random);
    const std::string path = base::str(set.folder, "/s-", which, ".tar");
    std::ofstream(path, std::ios::binary) << bytes;
    std::optional<Samples> plain = read_plainly(bytes);
    if (plain) {
      const auto other = read_plainly(set.shards[1 - which]);
      plain->insert(plain->end(), other->begin(), other->end());
    }
    const Seen seen = read(set, shuffled, skips);
    std::ofstream(path, std::ios::binary) << set.shards[which];
    const bool is_changed = bytes != set.shards[which];
    const std::string what = lost(seen, beside, skips, is_changed, plain, whole);
    ++outcomes[base::str(kBeside[static_cast<int>(beside)], seen.error     ? ": an error"
                                                            : seen.bad > 0 ? ": bad samples, counted"
                                                            : seen.samples == whole
                                                                ? ": all samples"
                                                                : ": another whole archive, or texts")];
    if (what.empty()) continue;
    ++losses;
    std::printf("LOST, damage %lld of seed %llu, with %s beside it, %s, %s: %s\n",
                static_cast<long long>(number), static_cast<unsigned long long>(*seed),
                kBeside[static_cast<int>(beside)], shuffled ? "shuffled" : "in order",
                skips ? "skipping" : "stopping", what.c_str());
  }
  for (const auto& [outcome, times] : outcomes)
    std::printf("%9lld %s\n", static_cast<long long>(times), outcome.c_str());
  std::printf("%lld damages, %lld silent losses\n", static_cast<long long>(*count),
              static_cast<long long>(losses));
  return losses == 0 ? 0 : 1;
}
