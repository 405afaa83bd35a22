// WordLevel: each word is a token or unknown.
#include "sluice/text/models/model.h"

namespace sluice::text {
namespace {

class WordLevel : public Model {
 public:
  static base::Result<std::unique_ptr<Model>> read(const JsonObject& object) {
    auto model = std::make_unique<WordLevel>();
    SLUICE_TRY(model->vocabulary_, Vocabulary::read(object, "vocab"));
    SLUICE_TRY(model->unknown_token_, object.text_or("unk_token", "<unk>"));
    model->unknown_ = model->vocabulary_.find(model->unknown_token_);
    return std::unique_ptr<Model>(std::move(model));
  }

  base::Status encode(std::string_view word, EncodeScratch&, TokenSink& sink) const override {
    auto id = vocabulary_.find(word);
    if (!id) id = unknown_;
    if (!id)
      return base::fail(Code::kInvalidArgument, "no token for '", word.substr(0, 100), "', and unk_token '",
                        unknown_token_, "' is not in the vocabulary");
    sink.put(*id, 0, word.size());
    return {};
  }

 private:
  std::string unknown_token_;
  std::optional<TokenId> unknown_;
};

}  // namespace

base::Result<std::unique_ptr<Model>> read_word_level(const JsonObject& object) {
  return WordLevel::read(object);
}

}  // namespace sluice::text
