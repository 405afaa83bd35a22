// Models by name.
#include <functional>
#include <map>

#include "sluice/base/error.h"
#include "sluice/base/text/join.h"
#include "sluice/base/text/strings.h"
#include "sluice/models/models.h"

namespace sluice::models {
namespace registry_detail {

using Maker = std::function<ModelPtr(const Shape&)>;

ModelPtr image_transformer(const Shape& shape) {
  TransformerOptions options;
  options.classes = shape.classes;
  options.channels = shape.channels;
  options.image_size = shape.image_size;
  options.recompute = shape.recompute;
  for (int64_t patch : {4, 7, 2, 5, 3, 1}) {
    options.patch = patch;
    if (shape.image_size % patch == 0) break;
  }
  if (shape.image_size >= 128 && shape.image_size % 16 == 0) options.patch = 16;
  return transformer(options);
}

std::map<std::string, Maker> make_table() {
  std::map<std::string, Maker> table = {
      {"resnet18", [](const Shape& s) { return resnet18(s.classes, s.channels); }},
      {"resnet34", [](const Shape& s) { return resnet34(s.classes, s.channels); }},
      {"resnet50", [](const Shape& s) { return resnet50(s.classes, s.channels); }},
      {"resnet101", [](const Shape& s) { return resnet101(s.classes, s.channels); }},
      {"resnet152", [](const Shape& s) { return resnet152(s.classes, s.channels); }},
      {"mlp",
       [](const Shape& s) {
         return mlp(s.channels * s.image_size * s.image_size, {1024, 1024}, s.classes);
       }},
      {"lenet", [](const Shape& s) { return lenet(s); }},
      {"transformer", image_transformer},
  };
  for (int64_t depth : {8, 14, 20, 32, 44, 56, 110})
    table[base::str("cifar_resnet", depth)] = [depth](const Shape& s) {
      return cifar_resnet(depth, s.classes, s.channels);
    };
  return table;
}

const std::map<std::string, Maker>& table() {
  static const std::map<std::string, Maker> makers = make_table();
  return makers;
}

}  // namespace registry_detail

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& [name, maker] : registry_detail::table()) result.push_back(name);
  return result;
}

ModelPtr create(const std::string& name, const Shape& shape) {
  const auto& table = registry_detail::table();
  if (shape.classes < 1 || shape.channels < 1 || shape.image_size < 1)
    throw_error(Code::kInvalidArgument,
                base::str("model ", name, ": classes, channels and image size must be at least 1,", " not ",
                          shape.classes, ", ", shape.channels, ", ", shape.image_size));
  if (auto found = table.find(name); found != table.end()) {
    if (shape.recompute && name != "transformer")
      throw_error(
          Code::kInvalidArgument,
          base::str("model ", name, " has no layers that could be computed again (recompute): it is ",
                    "small, or has BatchNorm, whose statistics would be updated twice; transformer ", "has"));
    return found->second(shape);
  }
  std::string near = base::nearest(name, names());
  throw_error(Code::kNotFound,
              base::str("there is no model \"", name, "\"",
                        near.empty() ? std::string() : base::str("; did you mean \"", near, "\"?"),
                        " Known models: ", base::join(names(), ", ")));
}

}  // namespace sluice::models
