#include "sluice/train/recipe/sections.h"

#include "sluice/train/recipe/choice.h"
#include "sluice/train/recipe/parsed.h"
#include "sluice/train/recipe/reasons.h"

namespace sluice::train {

// clang-format off
std::vector<base::Flag> language_rows(TrainOptions& o) {
  using base::Flag;
  const bool has_running_text = o.shapes.empty() && !o.pack && o.task != Task::kClassify;
  return {
      Flag{"Text", "--tokenizer", &o.tokenizer, "", "Use this tokenizer.json, or its folder; empty: the tokenizer next to the token files of --train, or else in --weights"}
          .idle(without_texts(o)),
      Flag{"Text", "--texts", &o.texts, "", "classify: find the text of a sample by these extensions"}
          .idle(without_texts(o)).idle(o.task != Task::kClassify, {"--task"}, "it is for --task classify"),
      Flag{"Text", "--length", &o.length, "tokens", "Put N tokens into a row; 0: the model's number of positions, at most 1024"}
          .at_least(0).idle(without_texts(o)).setting(ranks::kTexts),
      Flag{"Text", "--shapes", parsed("--shapes", o.shapes), "", "Give each document a row of its own, in batches of these shapes, such as 16x512,32x256; empty: rows of running text"}
          .idle(without_texts(o)).setting(ranks::kTexts),
      Flag{"Text", "--pack", &o.pack, "", "Fill rows with whole documents, which do not see each other"}
          .idle(without_texts(o)).setting(ranks::kTexts),
      Flag{"Text", "--long-documents", choice("--long-documents", o.long_documents), "", "Choose what happens to documents longer than a row, with --shapes and --pack"}
          .idle(without_texts(o)).idle(has_running_text, {"--shapes", "--pack"}, "running text has no documents: it is for --shapes and --pack"),
      Flag{"Text", "--mask-share", &o.mask_share, "", "mlm: hide this share of the tokens"}
          .within(base::above_to(0, 1), "takes a share above 0 and at most 1")
          .idle(without_texts(o)).idle(o.task != Task::kMlm, {"--task"}, "it is for --task mlm"),
  };
}
// clang-format on

}  // namespace sluice::train
