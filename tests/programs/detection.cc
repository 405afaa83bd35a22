// Detectors, whose losses and answers have as many rows as there are objects: masks of cells that hold one,
// the hardest negatives, the suppression of boxes that overlap.
#include "tests/programs/programs.h"

namespace sluice::tests {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::indexing::Ellipsis;
using torch::indexing::Slice;

constexpr int kDetections = 16;

// The areas that each of `left` (rows of x1, y1, x2, y2) shares with each of `right`, by the areas of both
// together.
torch::Tensor overlaps(const torch::Tensor& left, const torch::Tensor& right) {
  const torch::Tensor low = torch::max(left.unsqueeze(1).slice(2, 0, 2), right.unsqueeze(0).slice(2, 0, 2));
  const torch::Tensor high = torch::min(left.unsqueeze(1).slice(2, 2), right.unsqueeze(0).slice(2, 2));
  const torch::Tensor shared = (high - low).clamp_min(0).prod(2);
  const auto area = [](const torch::Tensor& boxes) {
    return (boxes.slice(1, 2) - boxes.slice(1, 0, 2)).prod(1);
  };
  return shared / (area(left).unsqueeze(1) + area(right).unsqueeze(0) - shared);
}

// Keeps the best box and drops what overlaps it, again and again. Returns how many boxes are kept.
int64_t suppress(torch::Tensor boxes, torch::Tensor scores, double most) {
  const torch::Tensor order = std::get<1>(scores.sort(/*dim=*/0, /*descending=*/true));
  boxes = boxes.index_select(0, order);
  int64_t kept = 0;
  while (boxes.size(0) > 0) {
    ++kept;
    if (boxes.size(0) == 1) break;
    const torch::Tensor rest = boxes.slice(0, 1);
    boxes = rest.index({overlaps(boxes.slice(0, 0, 1), rest)[0] <= most});
  }
  return kept;
}

torch::Tensor random_boxes(int64_t count) {
  const torch::Tensor low = torch::rand({count, 2}) * 0.6;
  return torch::cat({low, low + 0.2 + 0.2 * torch::rand({count, 2})}, 1);
}

// One default box of a third of the image at each of 6 × 6 places.
torch::Tensor default_boxes() {
  const torch::Tensor middle = (torch::arange(6) + 0.5) / 6;
  const auto grid = torch::meshgrid({middle, middle}, "ij");
  const torch::Tensor middles = torch::stack({grid[1].flatten(), grid[0].flatten()}, 1);
  return torch::cat({middles - 1.0 / 6, middles + 1.0 / 6}, 1);
}

// Liu et al. (2016): boxes matched to objects, three times as many negatives as positives, the suppression of
// boxes.
void single_shot_detector(torch::Device device, Curve& curve) {
  constexpr int64_t kClasses = 3;
  nn::Sequential network(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)), nn::ReLU(),
                         nn::Conv2d(nn::Conv2dOptions(8, 4 + 1 + kClasses, 3).padding(1)));
  network->to(device);
  torch::optim::SGD optimizer(network->parameters(), 0.05);
  const torch::Tensor defaults = default_boxes().to(device);
  for (int step = 0; step < kDetections; ++step) {
    const torch::Tensor objects = random_boxes(3).to(device), kinds = labels(3, kClasses, device);
    const torch::Tensor answer = network->forward(images(1, 3, 12, device))[0].flatten(1).t();
    const torch::Tensor places = answer.slice(1, 0, 4), scores = answer.slice(1, 4);

    const auto [best, which] = overlaps(defaults, objects).max(1);
    const torch::Tensor positive = best > 0.25;
    const torch::Tensor wanted = torch::where(positive, kinds.index_select(0, which) + 1, 0);
    const torch::Tensor offsets = objects.index_select(0, which) - defaults;
    const torch::Tensor place_loss = F::smooth_l1_loss(places.index({positive}), offsets.index({positive}),
                                                       F::SmoothL1LossFuncOptions().reduction(torch::kSum));
    const torch::Tensor each =
        F::cross_entropy(scores, wanted, F::CrossEntropyFuncOptions().reduction(torch::kNone));
    const int64_t positives = positive.sum().item<int64_t>();
    const torch::Tensor negatives = each.index({~positive});
    const int64_t hardest = std::min<int64_t>(3 * positives, negatives.size(0));
    const torch::Tensor loss =
        (place_loss + each.index({positive}).sum() + std::get<0>(negatives.topk(hardest)).sum()) /
        std::max<int64_t>(positives, 1);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();

    torch::NoGradGuard no_grad;
    const torch::Tensor sure = std::get<0>(scores.softmax(1).slice(1, 1).max(1));
    const torch::Tensor found = sure > sure.mean();
    const int64_t kept = suppress((defaults + places).index({found}), sure.index({found}), 0.3);
    curve.add(loss + 0.1 * static_cast<double>(kept));
  }
}

// Redmon et al. (2016): the loss of the cells that hold an object, and of those that hold none.
void cells_with_objects(torch::Device device, Curve& curve) {
  constexpr int64_t kClasses = 3, kCells = 6;
  nn::Sequential network(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)), nn::BatchNorm2d(8),
                         nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.1)),
                         nn::Conv2d(nn::Conv2dOptions(8, 5 + kClasses, 1)));
  network->to(device);
  torch::optim::Adam optimizer(network->parameters(), 1e-2);
  for (int step = 0; step < kDetections; ++step) {
    const torch::Tensor answer = network->forward(images(4, 3, 2 * kCells, device)).permute({0, 2, 3, 1});
    const torch::Tensor has_object = (torch::rand({4, kCells, kCells}) < 0.2).to(device);
    const torch::Tensor places = torch::rand({4, kCells, kCells, 4}).to(device);
    const torch::Tensor kinds = labels(4 * kCells * kCells, kClasses, device).view({4, kCells, kCells});

    const torch::Tensor there = answer.index({has_object}), empty = answer.index({~has_object});
    const torch::Tensor place_loss =
        F::mse_loss(there.index({Ellipsis, Slice(0, 4)}).sigmoid(), places.index({has_object}));
    const torch::Tensor object_loss = F::binary_cross_entropy_with_logits(
        there.index({Ellipsis, 4}), torch::ones_like(there.index({Ellipsis, 4})));
    const torch::Tensor empty_loss = F::binary_cross_entropy_with_logits(
        empty.index({Ellipsis, 4}), torch::zeros_like(empty.index({Ellipsis, 4})));
    const torch::Tensor kind_loss =
        F::cross_entropy(there.index({Ellipsis, Slice(5)}), kinds.index({has_object}));
    const torch::Tensor loss = 5 * place_loss + object_loss + 0.5 * empty_loss + kind_loss;
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    curve.add(loss);
  }
}

}  // namespace

// Once their lengths are known to vary, a step is cut in other places, and these programs are compiled once.
std::vector<TutorialProgram> detection_programs() {
  return {{"single_shot_detector", single_shot_detector, 2e-3, 2, true},
          {"cells_with_objects", cells_with_objects, 2e-3, 2, true}};
}

}  // namespace sluice::tests
