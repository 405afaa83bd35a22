// A Transformer encoder for classes of token sequences, or of images cut into patches.
#include "sluice/base/error.h"
#include "sluice/base/strings.h"
#include "sluice/models/models.h"

namespace sluice::models {
namespace transformer_detail {

class Transformer : public Model {
 public:
  explicit Transformer(const TransformerOptions& options) : options_(options) {
    int64_t positions = options.max_length;
    if (options.vocabulary > 0) {
      embedding_ = register_module("embedding", torch::nn::Embedding(options.vocabulary, options.width));
    } else {
      int64_t side = options.image_size / options.patch;
      positions = side * side;
      patches_ = register_module(
          "patches",
          torch::nn::Conv2d(torch::nn::Conv2dOptions(options.channels, options.width, options.patch)
                                .stride(options.patch)));
    }
    position_ = register_parameter("position", torch::randn({positions, 1, options.width}) * 0.02);
    auto layer = torch::nn::TransformerEncoderLayer(
        torch::nn::TransformerEncoderLayerOptions(options.width, options.heads)
            .dim_feedforward(options.feedforward)
            .dropout(options.dropout)
            .activation(torch::kGELU));
    encoder_ = register_module("encoder", torch::nn::TransformerEncoder(layer, options.layers));
    fc_ = register_module("fc", torch::nn::Linear(options.width, options.classes));
    // TransformerEncoder copies one layer, weights and all: give each layer numbers of its own.
    for (auto& parameter : encoder_->parameters())
      if (parameter.dim() > 1) torch::nn::init::xavier_uniform_(parameter);
  }

  torch::Tensor forward(torch::Tensor x) override {
    if (!embedding_) return from_patches(x);
    torch::Tensor h = embedding_(x).transpose(0, 1) + position_.narrow(0, 0, x.size(1));
    if (options_.padding < 0) return fc_(encoder_(h).mean(0));
    torch::Tensor padded = x.eq(options_.padding);
    h = encoder_(h, torch::Tensor(), padded);
    torch::Tensor kept = padded.logical_not().to(h.scalar_type()).transpose(0, 1).unsqueeze(2);
    return fc_((h * kept).sum(0) / kept.sum(0).clamp_min(1));
  }

 private:
  torch::Tensor from_patches(const torch::Tensor& image) {
    torch::Tensor h = patches_(image).flatten(2).permute({2, 0, 1});  // positions × batch × width
    return fc_(encoder_(h + position_).mean(0));
  }

  TransformerOptions options_;
  torch::nn::Embedding embedding_{nullptr};
  torch::nn::Conv2d patches_{nullptr};
  torch::Tensor position_;
  torch::nn::TransformerEncoder encoder_{nullptr};
  torch::nn::Linear fc_{nullptr};
};

}  // namespace transformer_detail

ModelPtr transformer(const TransformerOptions& options) {
  if (options.heads < 1 || options.width % options.heads != 0)
    throw Error(Code::kInvalidArgument, base::str("transformer: the width (", options.width,
                                                  ") must be a multiple of the heads (", options.heads, ")"));
  if (options.vocabulary <= 0 && (options.patch < 1 || options.image_size % options.patch != 0))
    throw Error(Code::kInvalidArgument, base::str("transformer: the image size (", options.image_size,
                                                  ") must be a multiple of the patch (", options.patch, ")"));
  return std::make_shared<transformer_detail::Transformer>(options);
}

}  // namespace sluice::models
