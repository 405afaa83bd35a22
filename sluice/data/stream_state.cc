#include "sluice/data/stream_state.h"

#include <map>
#include <vector>

#include "sluice/data/dataset_settings.h"

namespace sluice::data {
namespace {

std::map<std::string, std::string> words_of(const std::string& text) {
  std::map<std::string, std::string> words;
  for (const std::string& word : base::split(text, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return words;
}

std::int64_t number_in(const std::map<std::string, std::string>& words, const char* name) {
  const auto found = words.find(name);
  const auto number = found == words.end() ? base::Result<std::int64_t>(base::fail(Code::kNotFound, name))
                                           : parse_whole_number(found->second);
  if (!number || *number < 0)
    misuse(base::str("a stream's state has no number '", name, "': expected text that Stream::state() gave"));
  return *number;
}

}  // namespace

OpenOptions position_in(const std::string& state, OpenOptions options) {
  const auto words = words_of(state);
  options.epoch = number_in(words, "epoch");
  options.skip_batches = number_in(words, "batches");
  return options;
}

void expect_same_order(const std::string& before, const std::string& now) {
  const auto words = words_of(before);
  std::vector<std::string> differences;
  for (const auto& [name, value] : words_of(now)) {
    const auto found = words.find(name);
    const std::string was = found == words.end() ? "not set" : found->second;
    if (was != value) differences.push_back(base::str(name, " is ", value, " now and was ", was));
  }
  if (differences.empty()) return;
  misuse(base::str("cannot go on in mid-epoch, because the samples would come in another order: ",
                   base::join(differences, "; "),
                   ". Set this as it was when the state was taken, or begin with the next epoch"));
}

}  // namespace sluice::data
