// A Transformer encoder for classes of token sequences, or of images cut into patches.
#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/models/layer.h"
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
    // Holds the layers' weights by the names that Python gives them.
    encoder_ = register_module("encoder", torch::nn::TransformerEncoder(layer, options.layers));
    fc_ = register_module("fc", torch::nn::Linear(options.width, options.classes));
    // TransformerEncoder copies one layer with its weights: each layer gets weights of its own.
    for (auto& parameter : encoder_->parameters())
      if (parameter.dim() > 1) torch::nn::init::xavier_uniform_(parameter);
  }

  // The heads' projections, the feed-forward and the vocabulary lie over `tensor`, and the tables of words
  // and positions along their width over fsdp.
  std::vector<ShardRule> shard_rules() const override {
    const int64_t heads = options_.heads;
    return {{"embedding.weight", "tensor", 0, /*heads=*/0, /*padded=*/true},
            {"position", "fsdp", 2},
            {"encoder.layers.*.self_attn.in_proj_weight", "tensor", 0, heads},
            {"encoder.layers.*.self_attn.out_proj.weight", "tensor", 1, heads},
            {"encoder.layers.*.linear1.weight", "tensor", 0},
            {"encoder.layers.*.linear2.weight", "tensor", 1}};
  }

  torch::Tensor forward(torch::Tensor x) override {
    if (!embedding_) return fc_(encode(patches_(x).flatten(2).transpose(1, 2), {}).mean(1));
    const torch::Tensor h = embedding_(x);
    if (options_.padding < 0) return fc_(encode(h, {}).mean(1));
    const torch::Tensor seen = x.ne(options_.padding), kept = seen.to(h.scalar_type()).unsqueeze(2);
    const torch::Tensor encoded = encode(h, seen.unsqueeze(1).unsqueeze(1));
    return fc_((encoded * kept).sum(1) / kept.sum(1).clamp_min(1));
  }

 private:
  // Encodes words or patches [batch, positions, width]. `mask`: the positions that are seen, [batch, 1, 1,
  // positions].
  torch::Tensor encode(const torch::Tensor& words, const std::optional<torch::Tensor>& mask) {
    torch::Tensor h = words + position_.narrow(0, 0, words.size(1)).transpose(0, 1);
    for (const auto& module : *encoder_->layers) {
      auto& part = *module->as<torch::nn::TransformerEncoderLayer>();
      h = layer(
          options_.recompute, [this, &part, mask](const torch::Tensor& x) { return encode(part, x, mask); },
          h);
    }
    return h;
  }

  torch::Tensor encode(torch::nn::TransformerEncoderLayerImpl& part, torch::Tensor h,
                       const std::optional<torch::Tensor>& mask) const {
    h = part.norm1(h + part.dropout1(attention(*part.self_attn, h, mask)));
    return part.norm2(h + part.dropout2(part.linear2(part.dropout(torch::gelu(part.linear1(h))))));
  }

  // Computes torch::nn::MultiheadAttention of three equal inputs, but as one operation.
  torch::Tensor attention(torch::nn::MultiheadAttentionImpl& weights, const torch::Tensor& h,
                          const std::optional<torch::Tensor>& mask) const {
    const int64_t batch = h.size(0), positions = h.size(1);
    const torch::Tensor projected =
        torch::nn::functional::linear(h, weights.in_proj_weight, weights.in_proj_bias);
    std::vector<torch::Tensor> heads = projected.chunk(3, -1);
    for (torch::Tensor& x : heads)
      x = x.reshape({batch, positions, options_.heads, options_.width / options_.heads}).transpose(1, 2);
    const torch::Tensor together = at::scaled_dot_product_attention(heads[0], heads[1], heads[2], mask,
                                                                    is_training() ? options_.dropout : 0);
    return weights.out_proj->forward(together.transpose(1, 2).reshape(h.sizes()));
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
    throw_error(Code::kInvalidArgument, base::str("transformer: the width (", options.width,
                                                  ") must be a multiple of the heads (", options.heads, ")"));
  if (options.vocabulary <= 0 && (options.patch < 1 || options.image_size % options.patch != 0))
    throw_error(Code::kInvalidArgument, base::str("transformer: the image size (", options.image_size,
                                                  ") must be a multiple of the patch (", options.patch, ")"));
  return std::make_shared<transformer_detail::Transformer>(options);
}

}  // namespace sluice::models
