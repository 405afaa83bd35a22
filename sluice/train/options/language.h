// The options of texts and rows of tokens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/base/export.h"
#include "sluice/data/length_shape.h"
#include "sluice/train/choices.h"

SLUICE_API_BEGIN

namespace sluice::train {

struct LanguageSection {
  std::string tokenizer;  // a tokenizer.json or its folder; empty: the one next to the token files, if any
  std::string texts = "txt";              // kClassify: extensions of the text in a sample
  int64_t length = 0;                     // tokens of a row; 0: the model's positions, but at most 1024
  std::vector<data::LengthShape> shapes;  // of batches of single documents; empty: running text
  bool pack = false;                      // fill rows of `length` with whole documents
  LongDocument long_documents = LongDocument::kError;  // for documents longer than a row
  double mask_share = 0.15;                            // the share of the tokens that mlm hides
};

}  // namespace sluice::train

SLUICE_API_END
