#include "sluice/text/tools/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>

#include "sluice/text/characters/byte_alphabet.h"
#include "sluice/text/characters/regex.h"
#include "sluice/text/characters/unicode.h"
#include "sluice/text/flat_map.h"
#include "sluice/text/steps/pre_tokenizer.h"
#include "sluice/text/tools/ordered_work.h"

namespace sluice::text {
namespace {

constexpr char kLlama3Pattern[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::size_t kBatch = std::size_t{1} << 20;  // bytes of text in each task
constexpr std::size_t kWordCost = 64;                 // bytes of each entry of the table, besides the word

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
};
using Counts = std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>>;

// Counts words, within a limit of memory.
class WordTable {
 public:
  explicit WordTable(std::uint64_t memory) : memory_(memory) {}

  void add(const Counts& counts) {
    for (const auto& [word, count] : counts) {
      const auto [place, is_new] = counts_.try_emplace(word, 0);
      place->second += count;
      words_ += count;
      if (is_new) used_ += word.size() + kWordCost;
    }
    // Rare words matter least for the merges.
    while (used_ > memory_) forget(++forgotten_);
  }

  const Counts& counts() const { return counts_; }
  std::uint64_t words() const { return words_; }
  std::uint64_t forgotten() const { return forgotten_; }

 private:
  void forget(std::uint64_t count) {
    for (auto word = counts_.begin(); word != counts_.end();) {
      if (word->second > count) {
        ++word;
        continue;
      }
      used_ -= word->first.size() + kWordCost;
      word = counts_.erase(word);
    }
  }

  const std::uint64_t memory_;
  Counts counts_;
  std::uint64_t used_ = 0, words_ = 0, forgotten_ = 0;
};

struct Counted {
  Counts counts;
  std::uint64_t bytes = 0;
};

base::Result<Regex> regex_of(const std::string& pattern) {
  return Regex::compile(pattern == "gpt2" ? kGpt2Pattern : pattern == "llama3" ? kLlama3Pattern : pattern);
}

base::Result<Counted> count(DocumentBatch& batch, const BpeTraining& training, const Regex& regex) {
  Counted made;
  for (RawDocument& document : batch.documents) {
    SLUICE_TRY(const std::string text,
               text_of(std::move(document), training.files[batch.file], training.input));
    made.bytes += text.size();
    const auto add = [&](std::size_t begin, std::size_t end) {
      if (begin == end) return;
      const auto word = std::string_view(text).substr(begin, end - begin);
      const auto found = made.counts.find(word);
      if (found != made.counts.end()) {
        ++found->second;
      } else {
        made.counts.emplace(word, 1);
      }
    };
    std::size_t reached = 0;
    SLUICE_OK(regex.each(text, [&](std::size_t begin, std::size_t end) {
      add(reached, begin);
      add(begin, end);
      reached = end;
    }));
    add(reached, text.size());
  }
  return made;
}

base::Status count_words(const BpeTraining& training, const Regex& regex, WordTable& table,
                         BpeReport& report) {
  BatchReader reader(training.files, training.input, kBatch);
  const std::size_t workers =
      training.workers > 0 ? static_cast<std::size_t>(training.workers) : base::available_processors();
  return ordered_work<DocumentBatch, Counted>(
      workers, [&](DocumentBatch& batch) { return reader.next(batch); },
      [&](DocumentBatch& batch) { return count(batch, training, regex); },
      [&](Counted counted) -> base::Status {
        table.add(counted.counts);
        report.bytes += counted.bytes;
        if (training.progress) training.progress(report.bytes);
        return {};
      });
}

std::uint64_t pair_of(std::uint32_t first, std::uint32_t second) {
  return static_cast<std::uint64_t>(first) << 32 | second;
}

// A pair that may be merged, with its count when it was put into the queue.
struct Candidate {
  std::uint64_t count;
  std::uint64_t pair;
  std::vector<std::uint32_t> words;  // the words that contain it
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class Merger {
 public:
  // The first tokens are the special ones, then the bytes in the order of GPT-2's alphabet.
  Merger(const BpeTraining& training, const Counts& counts) : training_(training) {
    for (const std::string& token : training.special_tokens) id_of(token);
    std::vector<char32_t> alphabet(byte_alphabet().begin(), byte_alphabet().end());
    std::sort(alphabet.begin(), alphabet.end());
    std::array<std::uint32_t, 256> byte_ids{};
    for (const char32_t character : alphabet) {
      std::string text;
      append_utf8(text, character);
      byte_ids[static_cast<std::size_t>(byte_of(character))] = id_of(text);
    }
    words_.reserve(counts.size());
    for (const auto& [word, count] : counts) {
      std::vector<std::uint32_t> symbols;
      symbols.reserve(word.size());
      for (const char c : word) symbols.push_back(byte_ids[static_cast<unsigned char>(c)]);
      words_.push_back({std::move(symbols), static_cast<std::int64_t>(count)});
    }
  }

  void run() {
    count_pairs();
    while (static_cast<std::int64_t>(texts_.size()) < training_.vocabulary_size && !queue_.empty()) {
      Candidate top = std::move(const_cast<Candidate&>(queue_.top()));
      queue_.pop();
      const auto now = static_cast<std::uint64_t>(counts_[top.pair]);
      if (top.count != now) {
        top.count = now;
        queue_.push(std::move(top));
        continue;
      }
      if (top.count < 1 || top.count < training_.min_frequency) break;
      merge(top);
    }
  }

  const std::vector<std::string>& texts() const { return texts_; }
  const std::vector<std::uint64_t>& merges() const { return merges_; }

 private:
  struct Word {
    std::vector<std::uint32_t> symbols;
    std::int64_t count;
  };
  using Places = std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>;

  std::uint32_t id_of(const std::string& text) {
    const auto [place, is_new] = ids_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return place->second;
  }

  void count_pairs() {
    Places places;
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      const auto& symbols = words_[word].symbols;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        const std::uint64_t pair = pair_of(symbols[i], symbols[i + 1]);
        counts_[pair] += words_[word].count;
        put(places[pair], word);
      }
    }
    queue(places);
  }

  static void put(std::vector<std::uint32_t>& words, std::uint32_t word) {
    if (words.empty() || words.back() != word) words.push_back(word);
  }

  void queue(Places& places) {
    for (auto& [pair, words] : places)
      if (const std::int64_t count = counts_[pair]; count > 0)
        queue_.push({static_cast<std::uint64_t>(count), pair, std::move(words)});
  }

  void merge(const Candidate& top) {
    const auto first = static_cast<std::uint32_t>(top.pair >> 32),
               second = static_cast<std::uint32_t>(top.pair);
    const std::uint32_t both = id_of(texts_[first] + texts_[second]);
    merges_.push_back(top.pair);
    Places places;
    for (const std::uint32_t word : top.words) merge_in(word, first, second, both, places);
    queue(places);
  }

  void merge_in(std::uint32_t place, std::uint32_t first, std::uint32_t second, std::uint32_t both,
                Places& places) {
    Word& word = words_[place];
    auto& symbols = word.symbols;
    const auto gain = [&](std::uint64_t pair) {
      counts_[pair] += word.count;
      put(places[pair], place);
    };
    std::size_t to = 0;
    for (std::size_t from = 0; from < symbols.size(); ++from) {
      if (symbols[from] != first || from + 1 == symbols.size() || symbols[from + 1] != second) {
        symbols[to++] = symbols[from];
        continue;
      }
      if (to > 0) {
        counts_[pair_of(symbols[to - 1], first)] -= word.count;
        gain(pair_of(symbols[to - 1], both));
      }
      if (from + 2 < symbols.size()) {
        counts_[pair_of(second, symbols[from + 2])] -= word.count;
        gain(pair_of(both, symbols[from + 2]));
      }
      symbols[to++] = both;
      ++from;
    }
    symbols.resize(to);
  }

  const BpeTraining& training_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<std::string> texts_;
  std::vector<Word> words_;
  FlatMap<std::int64_t> counts_;  // [pair]
  std::priority_queue<Candidate> queue_;
  std::vector<std::uint64_t> merges_;
};

std::string json_of(const BpeTraining& training, const Merger& merger) {
  using nlohmann::ordered_json;
  ordered_json vocabulary = ordered_json::object(), merges = ordered_json::array(),
               added = ordered_json::array();
  const auto& texts = merger.texts();
  ordered_json::object_t entries;  // push_back avoids a look-up for each
  for (std::size_t id = 0; id < texts.size(); ++id) entries.push_back({texts[id], id});
  vocabulary = std::move(entries);
  // A pair that was merged twice counts once, at its last place, as in tokenizers.
  std::unordered_map<std::uint64_t, std::size_t> last;
  for (std::size_t i = 0; i < merger.merges().size(); ++i) last[merger.merges()[i]] = i;
  for (std::size_t i = 0; i < merger.merges().size(); ++i) {
    const std::uint64_t pair = merger.merges()[i];
    if (last[pair] == i) merges.push_back({texts[pair >> 32], texts[static_cast<std::uint32_t>(pair)]});
  }
  for (std::size_t id = 0; id < training.special_tokens.size(); ++id)
    added.push_back({{"id", id},
                     {"content", training.special_tokens[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const auto byte_level = [&](bool use_regex) {
    return ordered_json{
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
  };
  ordered_json pre_tokenizer = byte_level(true);
  if (training.pattern != "gpt2") {
    const std::string pattern = training.pattern == "llama3" ? kLlama3Pattern : training.pattern;
    const ordered_json split = {
        {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
    pre_tokenizer = {{"type", "Sequence"},
                     {"pretokenizers", ordered_json::array({split, byte_level(false)})}};
  }
  const ordered_json document = {{"version", "1.0"},
                                 {"truncation", nullptr},
                                 {"padding", nullptr},
                                 {"added_tokens", added},
                                 {"normalizer", nullptr},
                                 {"pre_tokenizer", pre_tokenizer},
                                 {"post_processor", nullptr},
                                 {"decoder", byte_level(true)},
                                 {"model",
                                  {{"type", "BPE"},
                                   {"dropout", nullptr},
                                   {"unk_token", nullptr},
                                   {"continuing_subword_prefix", nullptr},
                                   {"end_of_word_suffix", nullptr},
                                   {"fuse_unk", false},
                                   {"byte_fallback", false},
                                   {"ignore_merges", false},
                                   {"vocab", std::move(vocabulary)},
                                   {"merges", std::move(merges)}}}};
  return document.dump(2) + "\n";
}

base::Status check(const BpeTraining& training) {
  const auto least = static_cast<std::int64_t>(256 + training.special_tokens.size());
  if (training.vocabulary_size < least || training.vocabulary_size > (1 << 24))
    return base::fail(Code::kInvalidArgument, "a vocabulary of ", training.vocabulary_size,
                      " tokens: expected ", least, " (the bytes and the special tokens) to ", 1 << 24);
  std::vector<std::string> tokens = training.special_tokens;
  std::sort(tokens.begin(), tokens.end());
  const auto twice = std::adjacent_find(tokens.begin(), tokens.end());
  if (twice != tokens.end())
    return base::fail(Code::kInvalidArgument, "the special token '", *twice, "' is given twice");
  for (const std::string& token : tokens) {
    SLUICE_OK(check_utf8(token, "a special token"));
    // Bytes already are tokens.
    const auto bytes = from_byte_alphabet(token);
    if (token.empty() || (bytes && bytes->size() == 1))
      return base::fail(Code::kInvalidArgument, "'", token,
                        "' is not a special token: expected a text of its own");
  }
  return {};
}

}  // namespace

base::Result<BpeReport> train_bpe(const BpeTraining& training) {
  SLUICE_OK(check(training));
  SLUICE_TRY(const Regex regex, regex_of(training.pattern));
  BpeReport report;
  WordTable table(training.memory);
  BpeTraining with_ends = training;
  with_ends.input.keep_line_ends = true;
  SLUICE_OK(count_words(with_ends, regex, table, report));
  if (table.counts().empty())
    return base::fail(Code::kInvalidArgument, "the files hold no text: expected some to learn merges from");
  Merger merger(training, table.counts());
  merger.run();
  report.words = table.words();
  report.distinct = table.counts().size();
  report.forgotten = table.forgotten();
  report.merges = merger.merges().size();
  report.tokens = static_cast<std::int64_t>(merger.texts().size());
  report.json = json_of(training, merger);
  return report;
}

}  // namespace sluice::text
