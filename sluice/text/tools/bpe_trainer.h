// Learns the merges of byte-level BPE from texts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sluice/base/result.h"
#include "sluice/text/tools/document_reader.h"

namespace sluice::text {

struct BpeTraining {
  std::vector<std::string> files;
  InputOptions input;
  std::int64_t vocabulary_size = 32'000;  // includes special tokens and the 256 bytes
  std::uint64_t min_frequency = 0;        // the lowest count of a pair that is merged
  std::vector<std::string> special_tokens;
  std::string pattern = "gpt2";  // cuts texts into words: gpt2, llama3, or a regular expression
  int workers = 0;               // 0: one for each core
  std::uint64_t memory = std::uint64_t{2} << 30;           // limits the bytes of the table of words
  std::function<void(std::uint64_t bytes)> progress = {};  // bytes of counted text
};

struct BpeReport {
  std::string json;  // the tokenizer
  std::uint64_t bytes = 0, words = 0, distinct = 0, merges = 0;
  std::int64_t tokens = 0;
  // Words with at most this count were forgotten, because the table was full; 0: no word was.
  std::uint64_t forgotten = 0;
};

// The merges equal those of tokenizers' BpeTrainer with the alphabet of bytes on the same text: pairs by
// descending count, and with equal counts the pair with the lower ids. Lines are counted with their ends, as
// its train(files) does.
base::Result<BpeReport> train_bpe(const BpeTraining& training);

}  // namespace sluice::text
