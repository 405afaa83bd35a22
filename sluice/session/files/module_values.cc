#include "sluice/session/files/module_values.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "sluice/base/text/strings.h"
#include "sluice/device/runtime.h"
#include "sluice/device/sharding/blocks.h"
#include "sluice/device/sharding/gradients.h"
#include "sluice/device/sharding/shard.h"
#include "sluice/device/start/without_values.h"
#include "sluice/session/files/pair_names.h"
#include "sluice/session/files/weights.h"

namespace sluice::sessions {
namespace module_values_detail {

// What a file says of a tensor.
struct Facts {
  std::string name;
  std::vector<int64_t> sizes;
  bool is_complex = false;
};

std::vector<Facts> facts_of(const NamedTensors& tensors) {
  std::vector<Facts> facts;
  for (const auto& [name, tensor] : tensors)
    facts.push_back({name, tensor.sizes().vec(), tensor.is_complex()});
  return facts;
}

std::vector<Facts> facts_of(const StoredTensors& tensors) {
  std::vector<Facts> facts;
  for (const auto& [name, tensor] : tensors)
    facts.push_back({name, tensor.sizes, c10::isComplexType(tensor.type)});
  return facts;
}

std::vector<std::string> names_of(const std::vector<Facts>& facts) {
  std::vector<std::string> names;
  for (const Facts& fact : facts) names.push_back(fact.name);
  return names;
}

// A text with the name of `facts`, but not of `others`, that is nearest to `name`; "" if none is near.
std::string nearest_name(const std::string& name, const std::vector<Facts>& facts,
                         const std::vector<Facts>& others) {
  std::set<std::string> known;
  for (const Facts& fact : facts) known.insert(fact.name);
  for (const Facts& fact : others) known.erase(fact.name);
  const std::string near = base::nearest(name, {known.begin(), known.end()});
  return near.empty() ? std::string() : base::str("; the nearest name is ", near);
}

// Pairs the model's tensors with a file's tensors: the names and the shapes must be the same. A tensor may be
// missing in the file if `may_lack` accepts its name.
base::Result<NamePairs> paired(const std::vector<Facts>& own, const std::vector<Facts>& given,
                               const std::string& source, bool (*may_lack)(const std::string& name)) {
  const auto bad = [&](const auto&... what) {
    return base::fail(Code::kInvalidArgument, source, " is not of this model: ", what...);
  };
  NamePairs pairs = pair_names(names_of(own), names_of(given));
  for (size_t i = 0; i < own.size(); ++i) {
    const std::string& name = own[i].name;
    if (!pairs.places[i]) {
      if (may_lack != nullptr && may_lack(name)) continue;
      return bad("the tensor ", name, " is missing in it", nearest_name(name, given, own));
    }
    const Facts& there = given[*pairs.places[i]];
    if (there.sizes != own[i].sizes)
      return bad("the tensor ", name, " has shape ", at::IntArrayRef(there.sizes), " there, ",
                 at::IntArrayRef(own[i].sizes), " in the model");
    if (there.is_complex && !own[i].is_complex)
      return bad("the tensor ", name, " has complex numbers there, real ones in the model");
  }
  if (pairs.others.empty()) return pairs;
  const std::string& name = given[pairs.others.front()].name;
  return bad("it has no tensor called ", name, nearest_name(name, own, given));
}

// A tensor of the model, how it is to lie, and where its value is.
struct Target {
  std::string name;
  at::Tensor tensor;
  Layout layout;
  const StoredTensor* stored = nullptr;
  std::vector<device::LocalBlock> blocks = {};
  std::vector<device::LocalBlock> read = {};  // the blocks, or the one block that they form together
  uint64_t bytes = 0;                         // of `read`
};

uint64_t elements_of(const device::LocalBlock& block) {
  uint64_t elements = 1;
  for (const int64_t size : block.sizes) elements *= static_cast<uint64_t>(size);
  return elements;
}

// Returns the smallest block that has all of these.
device::LocalBlock hull_of(const std::vector<device::LocalBlock>& blocks) {
  device::LocalBlock hull = blocks.front();
  for (size_t d = 0; d < hull.start.size(); ++d) {
    int64_t end = 0;
    for (const device::LocalBlock& block : blocks) {
      hull.start[d] = std::min(hull.start[d], block.start[d]);
      end = std::max(end, block.start[d] + block.sizes[d]);
    }
    hull.sizes[d] = end - hull.start[d];
  }
  return hull;
}

// Blocks that fill their hull are read as one: their rows lie next to each other in the file.
std::vector<device::LocalBlock> read_together(const std::vector<device::LocalBlock>& blocks) {
  uint64_t elements = 0;
  for (const device::LocalBlock& block : blocks) elements += elements_of(block);
  const device::LocalBlock hull = hull_of(blocks);
  return elements_of(hull) == elements ? std::vector<device::LocalBlock>{hull} : blocks;
}

// Whether the caller has laid out the model already.
bool is_placed(const torch::nn::Module& model) {
  const std::vector<at::Tensor> parameters = model.parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const at::Tensor& parameter) { return is_laid_out(parameter); });
}

// Returns the layouts that the parameters have, or will get.
std::vector<Layout> layouts_for(const torch::nn::Module& model, const std::vector<ShardRule>& rules) {
  std::vector<NamedShape> shapes;
  std::vector<Layout> layouts;
  for (const auto& item : model.named_parameters()) {
    shapes.push_back({item.key(), item.value().sizes().vec()});
    layouts.push_back(is_laid_out(item.value()) ? layout_of(item.value())
                                                : Layout::replicated(shapes.back().dims.size()));
  }
  if (rules.empty() && is_placed(model)) return layouts;
  return parameter_layouts(mesh(), shapes, rules, rules_of_model(model)).layouts;
}

std::vector<Target> targets_of(torch::nn::Module& model, const StoredTensors& tensors,
                               const std::vector<ShardRule>& rules) {
  const std::vector<Layout> layouts = layouts_for(model, rules);
  std::vector<Target> targets;
  for (const auto& [name, tensor] : module_tensors(model)) {
    const size_t i = targets.size();
    Target target{name, tensor,
                  i < layouts.size() ? layouts[i] : Layout::replicated(static_cast<size_t>(tensor.dim()))};
    if (const auto found = tensors.find(name); found != tensors.end()) target.stored = &found->second;
    targets.push_back(std::move(target));
  }
  const auto is_missing = [](const Target& target) { return target.stored == nullptr; };
  targets.erase(std::remove_if(targets.begin(), targets.end(), is_missing), targets.end());
  for (Target& target : targets) {
    target.blocks = device::blocks_here(target.layout, target.tensor.sizes().vec());
    target.read = read_together(target.blocks);
    for (const device::LocalBlock& block : target.read)
      target.bytes += elements_of(block) * target.tensor.element_size();
  }
  return targets;
}

// The order of the tensors in their files.
bool lies_before(const Target& a, const Target& b) {
  const auto place = [](const Target& target) {
    const auto& pieces = target.stored->pieces;
    return pieces.empty() ? std::tuple(std::string_view(), uint64_t{0})
                          : std::tuple(std::string_view(pieces.front().file), pieces.front().begin);
  };
  return place(a) < place(b);
}

// Returns a block of what was read.
at::Tensor part_of(const at::Tensor& host, const device::LocalBlock& of, device::LocalBlock block) {
  for (size_t d = 0; d < block.start.size(); ++d) block.start[d] -= of.start[d];
  return device::part_at(host, block).contiguous();
}

// Puts a target's blocks on their devices. `hosts` [target.read]
void put(const Target& target, const std::vector<at::Tensor>& hosts) {
  std::vector<at::Tensor> blocks = hosts;
  if (target.read.size() == 1) {
    blocks.clear();
    for (const device::LocalBlock& block : target.blocks)
      blocks.push_back(part_of(hosts.front(), target.read.front(), block));
  }
  give_value(target.tensor, device::from_blocks(target.layout, target.tensor.sizes().vec(),
                                                target.tensor.scalar_type(), blocks));
}

base::Status load(const std::vector<const Target*>& group, StoredReader& reader) {
  std::vector<StoredBox> boxes;
  for (const Target* target : group)
    for (const device::LocalBlock& block : target->read)
      boxes.push_back({target->name, target->stored, block.start, block.sizes, target->tensor.scalar_type()});
  SLUICE_TRY(std::vector<at::Tensor> hosts, reader.read(boxes));
  auto next = hosts.begin();
  for (const Target* target : group) {
    const auto end = next + static_cast<std::ptrdiff_t>(target->read.size());
    const std::vector<at::Tensor> own(std::make_move_iterator(next), std::make_move_iterator(end));
    next = end;
    put(*target, own);
  }
  return {};
}

// Loads neighbours of the files together, as long as they are not larger than the largest tensor.
base::Status load_all(const std::vector<Target>& targets, StoredReader& reader) {
  uint64_t largest = 0, bytes = 0;
  for (const Target& target : targets) largest = std::max(largest, target.bytes);
  std::vector<const Target*> group;
  for (const Target& target : targets) {
    if (!group.empty() && bytes + target.bytes > largest) {
      SLUICE_OK(load(group, reader));
      group.clear();
      bytes = 0;
    }
    group.push_back(&target);
    bytes += target.bytes;
  }
  return load(group, reader);
}

// Returns `tensors` with other names.
template <typename Named>
Named with_names(Named tensors, const Renaming& renamed) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  names = renamed(std::move(names));
  Named result;
  size_t i = 0;
  for (auto& [old, tensor] : tensors)
    if (std::string& name = names[i++]; !name.empty())
      result.insert(result.end(), typename Named::value_type(std::move(name), std::move(tensor)));
  return result;
}

}  // namespace module_values_detail

NamedTensors module_tensors(const torch::nn::Module& model) {
  NamedTensors result;
  for (const auto& item : model.named_parameters()) result.emplace_back(item.key(), item.value());
  for (const auto& item : model.named_buffers()) result.emplace_back(item.key(), item.value());
  return result;
}

base::Status load_module(torch::nn::Module& model, const NamedTensors& tensors, const std::string& source,
                         bool (*may_lack)(const std::string& name)) {
  namespace detail = module_values_detail;
  const NamedTensors own = module_tensors(model);
  SLUICE_TRY(const NamePairs pairs,
             detail::paired(detail::facts_of(own), detail::facts_of(tensors), source, may_lack));
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < own.size(); ++i) {
    if (!pairs.places[i]) continue;
    const at::Tensor &tensor = own[i].second, &given = tensors[*pairs.places[i]].second;
    if (lacks_value(tensor))
      give_value(tensor, given.detach().to(at::kCPU, tensor.scalar_type(), false, /*copy=*/true));
    else
      tensor.copy_(given);
  }
  return {};
}

base::Status load_stored(torch::nn::Module& model, StoredReader& reader, const StoredTensors& tensors,
                         const std::string& source, const StoredLoad& how) {
  namespace detail = module_values_detail;
  SLUICE_OK(detail::paired(detail::facts_of(module_tensors(model)), detail::facts_of(tensors), source,
                           how.may_lack));
  torch::NoGradGuard no_grad;
  const bool is_placed = how.rules.empty() && detail::is_placed(model);
  if (!device::runtime().ahead) {
    std::vector<detail::Target> targets = detail::targets_of(model, tensors, how.rules);
    std::stable_sort(targets.begin(), targets.end(), detail::lies_before);
    SLUICE_OK(detail::load_all(targets, reader));
  }
  // What the files lack, and the layouts of gradients.
  if (!is_placed)
    shard(model, how.rules);
  else
    for (const at::Tensor& parameter : model.parameters()) device::lay_out_gradient_of(parameter);
  return {};
}

base::Status load_over_mesh(torch::nn::Module& model, const std::string& from, const Renaming& renamed,
                            const StoredLoad& how) {
  namespace detail = module_values_detail;
  StoredReader reader;
  auto listed = reader.list(from);
  if (listed) {
    if (renamed) *listed = detail::with_names(std::move(*listed), renamed);
    return load_stored(model, reader, *listed, from, how);
  }
  if (listed.error().code() != Code::kUnimplemented) return tl::unexpected<Error>(listed.error());
  SLUICE_TRY(NamedTensors tensors, read_weights(from));
  if (renamed) tensors = detail::with_names(std::move(tensors), renamed);
  SLUICE_OK(load_module(model, tensors, from, how.may_lack));
  shard(model, how.rules);
  return {};
}

}  // namespace sluice::sessions
