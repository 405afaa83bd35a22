#include "sluice/data/stream_state.h"

#include <map>
#include <vector>

#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/data/dataset_settings.h"
#include "sluice/data/shards/shard_facts.h"

namespace sluice::data {
namespace {

using Words = std::map<std::string, std::string>;

Words words_of(const std::string& text) {
  Words words;
  for (const std::string& word : base::split(text, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return words;
}

std::int64_t number_in(const Words& words, const char* name) {
  const auto found = words.find(name);
  const auto number = found == words.end() ? base::Result<std::int64_t>(base::fail(Code::kNotFound, name))
                                           : parse_whole_number(found->second);
  if (!number || *number < 0)
    misuse(base::str("a stream's state has no whole number '", name,
                     "': expected text that Stream::state() gave"));
  return *number;
}

constexpr char kSameNames[] = "the shards have the same names and numbers of samples, but ";

// Whether both states have this word about the shards' content, with different values.
bool differ(const Words& before, const Words& now, const std::string& name) {
  const auto was = before.find(name), is = now.find(name);
  return was != before.end() && is != now.end() && was->second != is->second;
}

// Checks that the shards still hold what they held. Sums from an index show this for copies of local shards
// anywhere; without sums the times of the files do. Removes the words about content from `now`.
base::Status check_content(const PinnedShards& shards, bool first_part, const Words& before, Words& now) {
  const std::string content = shards.prefix + "content", tags = shards.prefix + "tags",
                    sums = shards.prefix + "sums", times = shards.prefix + "times";
  const bool summed = before.contains(sums) && now.contains(sums);
  const bool touched = first_part && differ(before, now, times);
  const bool changed =
      differ(before, now, content) || differ(before, now, tags) || (summed && differ(before, now, sums));
  for (const std::string& name : {content, tags, sums, times}) now.erase(name);
  if (!changed && touched && summed) return check_sums(shards.urls);
  if (!changed && !touched) return {};
  return base::fail(Code::kFailedPrecondition, kSameNames,
                    changed
                        ? "other contents than they had"
                        : "local ones were written since. If they are copies of what they were, give them "
                          "the times of the originals (cp -p, rsync -t); with the sums that 'sluice data "
                          "index' writes into sizes.json times do not matter");
}

bool is_named(std::string_view word, std::string_view name) {
  return word == name || base::ends_with(word, base::str(".", name));
}

}  // namespace

std::string changed_content(const std::string& before, const std::string& now) {
  const Words was = words_of(before), is = words_of(now);
  bool changed = false;
  for (const auto& [name, value] : is) {
    if (is_named(name, "shards") && differ(was, is, name)) return "";
    const bool pins = is_named(name, "content") || is_named(name, "tags") || is_named(name, "sums");
    changed = changed || (pins && differ(was, is, name));
  }
  return changed ? base::str(kSameNames, "other contents than they had") : "";
}

OpenOptions position_in(const std::string& state, OpenOptions options) {
  const auto words = words_of(state);
  options.epoch = number_in(words, "epoch");
  options.skip_batches = number_in(words, "batches");
  return options;
}

void expect_same(const std::string& before, const std::string& now, const std::vector<PinnedShards>& shards,
                 bool first_part) {
  const Words words = words_of(before);
  Words left = words_of(now);
  base::Status content;
  for (const PinnedShards& one : shards) {
    base::Status checked = check_content(one, first_part, words, left);
    if (content && !checked) content = std::move(checked);
  }
  std::vector<std::string> differences;
  for (const auto& [name, value] : left) {
    const auto found = words.find(name);
    const std::string was = found == words.end() ? "not set" : found->second;
    if (was != value) differences.push_back(base::str(name, " is ", value, " now and was ", was));
  }
  if (differences.empty() && !content)
    throw_error(content.error().code(), base::str("cannot continue in mid-epoch: ", content.error().what()));
  if (differences.empty()) return;
  misuse(base::str("cannot continue in mid-epoch, because the samples would come in another order: ",
                   base::join(differences, "; "),
                   ". Set this as it was when the state was taken, or begin with the next epoch"));
}

}  // namespace sluice::data
